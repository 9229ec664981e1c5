"""How control threads divide events: every ratio and fraction, exact, and the same when single events are dealt out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.distribution.facts import FACTS, T1, as_fractions, destinations, parts, request, sent_to, standbys

from cepheid.distribution.dealing import carried, dealt, fractions, weights, whole_parts
from cepheid.distribution.example import FIG_14, FIG_26, example
from cepheid.distribution.lists import Listed
from cepheid.distribution.network import Network

DISJOINT, SHARED, GENERAL = (FACTS[f"ratio_{name}"] for name in ("disjoint_fig25", "partly_shared_fig26", "general"))
ONE = Fraction(1)


def both_hot(lists: dict[str, dict[str, tuple[str, ...]]]) -> Network:
    """Both control threads have requested all standbys of their lists for d31."""
    network = Network(example(lists))
    for at, own in lists.items():
        request(network, at, "d31", own["*"])
    return network


@pytest.mark.parametrize(("figure", "lists"), [(DISJOINT, FIG_14), (SHARED, FIG_26)], ids=["disjoint", "shared"])
def test_fractions(figure: dict[str, Any], lists: dict[str, dict[str, tuple[str, ...]]]) -> None:
    """FIG. 25 and 26: the weights of each control thread, its fractions, and what each thread carries in all cases."""
    if figure is DISJOINT:
        assert {at: [*own["*"]] for at, own in lists.items()} == figure["lists"]
        assert len(lists) == figure["control_threads"]
    network = both_hot(lists)
    by = {at: parts(network, at, "d31") for at in ("p21", "p22")}
    assert by == figure["weights"]
    assert {at: fractions(own) for at, own in by.items()} == {
        at: as_fractions(own) for at, own in figure["fractions"].items()
    }
    assert carried((ONE, own) for own in by.values()) == as_fractions(figure["both"])
    alone, to_original = figure["one_alone"], Fraction(figure["one_alone"]["p22_sends_to_d31"])
    loads = carried([(ONE, by["p21"]), (to_original, {"d31": 1})])
    assert loads == as_fractions(alone["loads"])
    assert as_ratio(loads) == alone["as_ratio"]
    unequal = figure["unequal_senders"]
    senders = [(Fraction(unequal["loads_of"][at]), own) for at, own in by.items()]
    assert carried(senders) == as_fractions(unequal["loads"])


def test_other_cases_of_disjoint_lists() -> None:
    """FIG. 25: a control thread with full load and no copies, or one copy only, makes the original carry more."""
    by = {at: parts(both_hot(FIG_14), at, "d31") for at in ("p21", "p22")}
    assert [*carried((ONE, own) for own in by.values()).values()] == [Fraction(2, 5)] * 5
    assert DISJOINT["both_as_ratio"] == [2] * 5
    without = carried([(ONE, by["p21"]), (ONE, {"d31": 1})])
    assert without == as_fractions(DISJOINT["p22_full_load_without_copies"]["loads"])
    one = carried([(ONE, by["p21"]), (ONE, weights("d31", [Listed("s003")], 2))])
    assert one == as_fractions(DISJOINT["p22_with_one_copy_only"]["loads"])
    unequal = DISJOINT["unequal_senders"]
    loads = [*as_fractions(unequal["loads"]).values()]
    mean = sum(loads, Fraction(0)) / len(loads)
    assert (mean, max(loads) / mean) == (Fraction(unequal["mean"]), Fraction(unequal["max_over_mean"]))


def test_the_share_flag() -> None:
    """FIG. 26: a standby in both lists has the share flag, and gets one part from each control thread."""
    network = both_hot(FIG_26)
    for at in ("p21", "p22"):
        assert destinations(network, at, share=True) == SHARED["lists"][at]
    assert standbys(network, ["s001", "s002", "s003"]) == SHARED["standbys"]


@pytest.mark.parametrize(("lists", "whole"), [(FIG_14, 5), (FIG_26, 4)], ids=["disjoint", "shared"])
def test_events_are_dealt_out_exactly(lists: dict[str, dict[str, tuple[str, ...]]], whole: int) -> None:
    """Of any five (or four) events in a row, each thread gets exactly its parts."""
    network = both_hot(lists)
    for at in ("p21", "p22", "p21"):
        for already in range(3):
            sent_to(network, at, T1, already)
            assert sent_to(network, at, T1, whole) == parts(network, at, "d31")


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 40))
def test_dealing_is_exact_from_any_event_on(numbers: list[int], already: int) -> None:
    """Of as many events in a row as there are parts, each destination gets its parts, wherever one begins to count."""
    own = {f"s{number}": part for number, part in enumerate(numbers)}
    credit: dict[str, int] = {}
    got: dict[str, int] = dict.fromkeys(own, 0)
    for number in range(already + sum(numbers)):
        to, credit = dealt(credit, own)
        got[to] += number >= already
    assert got == own


@pytest.mark.parametrize("row", GENERAL["uniform_rows"], ids=lambda row: f"{row['N']} x {row['own_copies']}")
def test_own_copies(row: dict[str, Any]) -> None:
    """N control threads with k copies of their own: every thread carries N/(Nk+1)."""
    controls, copies = row["N"], row["own_copies"]
    senders = [
        weights("d", [Listed(f"s{control}_{number}") for number in range(copies)], controls)
        for control in range(controls)
    ]
    share = fractions(senders[0])
    assert share["d"] == Fraction(row["to_original"])
    assert share["s0_0"] == Fraction(row["to_each_copy"])
    loads = carried((ONE, own) for own in senders)
    assert {*loads.values()} == {Fraction(row["load_of_every_thread"])}
    assert (len(loads), len(loads) - 1) == (row["threads"], row["standbys"])
    to_original = Fraction(1, controls * copies + 1)
    others = [(to_original, {"d": ONE})] * (controls - 1)
    assert len({*carried([(ONE, senders[0]), *others]).values()}) == 1


def test_a_ring() -> None:
    """Three control threads with one copy of their own and two that each share with a neighbour: all carry the same."""
    ring = GENERAL["ring_of_three"]
    senders = [
        weights("d", [Listed(f"o{n}"), Listed(f"h{n}", held_by=2), Listed(f"h{(n + 1) % 3}", held_by=2)], 3)
        for n in range(3)
    ]
    assert fractions(senders[0]) == as_fractions(ring["sender"])
    assert carried((ONE, own) for own in senders) == as_fractions(ring["loads"])
    assert whole_parts(senders[0]) == {"d": 2, "o0": 6, "h0": 3, "h1": 3}


def test_lists_that_all_share() -> None:
    """A standby that all control threads list gets one part, as the original does: an even split."""
    own = weights("d", [Listed(f"s{number}", held_by=3) for number in range(4)], 3)
    assert {*own.values()} == {ONE}
    assert {*carried([(ONE, own)] * 3).values()} == {Fraction(3, 4 + 1)}
    assert GENERAL["weights"] == {"original": "1", "own copy": "N", "copy held by m control threads": "N/m"}


def as_ratio(loads: dict[str, Fraction]) -> dict[str, int]:
    """The loads as the least whole numbers, of which the greatest is two."""
    largest = max(loads.values())
    return {to: int(2 * load / largest) for to, load in loads.items()}

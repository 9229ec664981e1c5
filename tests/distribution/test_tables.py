"""Copies and releases, and the three layouts of lists: every table and list of the figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.distribution.facts import (
    FACTS,
    T1,
    T2,
    administration,
    as_fractions,
    destinations,
    parts,
    release,
    request,
    sent_to,
    standbys,
)

from cepheid.distribution.control import available
from cepheid.distribution.dealing import carried
from cepheid.distribution.example import FIG_14, FIG_17, FIG_22, FIG_23, FIG_24, example
from cepheid.distribution.lists import circulated, listed
from cepheid.distribution.network import Network
from cepheid.distribution.setup import standby_ids

ORIGINALS = {"d31": T1, "d32": T2}


def used(network: Network, at: str) -> dict[str, list[str]]:
    """For each original, the threads to which a control thread sends its events."""
    return {original: [*sent_to(network, at, time, 12)] for original, time in ORIGINALS.items()}


@pytest.mark.parametrize("lists", [FIG_17, FIG_14], ids=["four ids", "two ids"])
def test_copy_and_release(lists: dict[str, dict[str, tuple[str, ...]]]) -> None:
    """FIG. 17: the tables before, with copies and after the release; who gets which events; and all messages.

    FIG. 14 gives the control thread two ids, FIG. 17 four.
    """
    figure, network = FACTS["copy_and_release_fig17"], Network(example(lists))
    listed_ids = len(lists["p21"]["*"])

    def check(moment: str, copies: str) -> None:
        assert administration(network, "p21") == figure[moment]["administration_table"]
        assert destinations(network, "p21") == figure[moment]["destination_list"][:listed_ids]
        assert standbys(network, standby_ids(4)) == figure[copies]
        assert used(network, "p21") == figure["destinations"][moment]

    check("before", "standbys_before")
    asked = available(network.threads["p21"].memory, "d31", 2)
    assert f"p21 requests {', '.join(asked)} for d31" == figure["step"]
    request(network, "p21", "d31", asked)
    check("after_copy", "standbys_after_copy")
    assert [*figure["copy_names"]] == [*network.threads["p21"].memory.in_use["d31"]]
    release(network, "p21", "d31", asked)
    check("after_release", "standbys_after_release")
    assert [list(message) for message in network.control_messages] == figure["trace"]


def test_one_list_for_each_control_thread() -> None:
    """FIG. 22: two control threads use the same standbys, for both originals; each release takes one reference back."""
    figure, network = FACTS["layout_shared_fig22"], Network(example(FIG_22, standbys=2))
    assert {one: [*ids] for one, lists in FIG_22.items() for ids in lists.values()} == figure["lists"]
    for at, original, ids in figure["requests"]:
        assert [*available(network.threads[at].memory, original, len(ids))] == ids
        request(network, at, original, ids)
    sets = [[sender, to] for sender, to, control in network.control_messages if control == "set"]
    assert sorted(sets) == sorted(figure["sets"])
    for at in ("p21", "p22"):
        assert destinations(network, at) == figure["after"][at]["destination_list"]
        assert administration(network, at) == figure["after"][at]["administration_table"]
        assert [*used(network, at).values()] == [figure["destinations"][at][frame] for frame in ("T1", "T2")]
    assert standbys(network, ["s001", "s002"]) == figure["after"]["standbys"]
    even = figure["even_weights_per_unit_load"]
    for frame, original in (("T1", "d31"), ("T2", "d32")):
        loads = carried((1, parts(network, at, original)) for at in ("p21", "p22"))
        assert loads == as_fractions(even[frame])
    for step in figure["releases"]:
        at, standby, original = step["step"]
        release(network, at, original, [standby])
        assert standbys(network, [standby]) == {standby: step[standby]}
    assert all(not row["distributed"] for at in ("p21", "p22") for row in administration(network, at))


def test_a_list_for_each_original() -> None:
    """FIG. 23: each original has its own list, so a standby holds one parameter; crossed, it would hold two."""
    figure, network = FACTS["layout_own_fig23"], Network(example(FIG_23, standbys=2))
    assert plain(FIG_23) == figure["lists"]
    for at, original, ids in figure["requests"]:
        request(network, at, original, ids)
    assert standbys(network, ["s001", "s002"]) == figure["after"]["standbys"]
    assert all(administration(network, at) == figure["after"]["administration_table_of_each"] for at in FIG_23)
    crossed, other = figure["counterexample_crossed"], Network(example(FIG_22, standbys=2))
    for at, original, ids in crossed["requests"]:
        request(other, at, original, ids)
    assert standbys(other, ["s001", "s002"]) == crossed["standbys"]
    assert held(other) == crossed["parameters_held"]
    assert held(network) == crossed["instead_of"]
    spread = [sorted(sent_to(one, at, time, 12).values()) for one in (network, other) for at, time in pairs()]
    assert (spread[:4] == spread[4:]) is crossed["same_spread"]


def test_lists_in_different_orders() -> None:
    """FIG. 24: ascending for one original, descending for the other, so that they first take different standbys."""
    figure, network = FACTS["layout_ordered_fig24"]["two"], Network(example(FIG_24, standbys=2))
    assert plain(FIG_24) == figure["lists"]
    for at, original, ids in figure["requests"]:
        assert [*available(network.threads[at].memory, original, 1)] == ids
        request(network, at, original, ids)
    assert standbys(network, ["s001", "s002"]) == figure["after"]["standbys"]
    assert administration(network, "p21") == figure["after"]["p21"]
    assert administration(network, "p22") == figure["after"]["p22"]
    at, original, ids = figure["variant"]["also"]
    request(network, at, original, ids)
    assert standbys(network, ["s002"]) == {"s002": figure["variant"]["s002"]}


def test_circulated_lists() -> None:
    """Nine standbys and three originals: each original meets three of its own first."""
    figure = FACTS["layout_ordered_fig24"]["circulated"]
    lists = circulated(figure["standbys"], figure["originals"])
    assert {original: [*ids] for original, ids in lists.items()} == figure["lists"]
    assert {original: [*ids[:3]] for original, ids in lists.items()} == figure["preferred"]
    assert len({ids[0] for ids in lists.values()}) == len(lists)  # first ids all different
    everywhere = listed({f"p{number}": lists for number in range(figure["control_threads"])})
    assert len({str(own) for own in everywhere.values()}) == 1


def test_fewer_standbys_than_originals() -> None:
    """With fewer standbys than originals, neighbours begin with the same one, and all come first equally often."""
    lists = circulated(["s1", "s2"], [f"d{number}" for number in range(6)])
    assert [ids[0] for ids in lists.values()] == ["s1", "s1", "s1", "s2", "s2", "s2"]


def test_standbys_of_other_originals_are_used_last() -> None:
    """An id that serves another original is skipped while there are others; then it is reused, if that is allowed."""
    for reuse, then in ((True, ("s003", "s004", "s001", "s002")), (False, ("s003", "s004"))):
        network = Network(example(FIG_17, reuse=reuse))
        request(network, "p21", "d31", ["s001", "s002"])
        assert available(network.threads["p21"].memory, "d32", 4) == then


def test_requests_and_releases_that_cannot_be() -> None:
    """A standby that is not in the list, or that is a copy already, cannot be requested; one that is no copy cannot be
    released. Nothing is sent then.
    """
    network = Network(example(FIG_14))
    request(network, "p21", "d31", ["s001"])
    sent = len(network.control_messages)
    with pytest.raises(ValueError, match=r"^d31 cannot be copied to s001, s003: the list has s002 left$"):
        request(network, "p21", "d31", ["s001", "s002", "s003"])
    with pytest.raises(ValueError, match=r"^s002 cannot be released: d31 has s001 from here$"):
        release(network, "p21", "d31", ["s001", "s002"])
    with pytest.raises(ValueError, match=r"^s003 cannot be released: d32 has no copies from here$"):
        release(network, "p22", "d32", ["s003"])
    request(network, "p21", "d31", ["s002"])
    with pytest.raises(ValueError, match=r"^d31 cannot be copied to s001: the list has no standbys left$"):
        request(network, "p21", "d31", ["s001"])
    assert len(network.control_messages) == sent + 2


def plain(lists: dict[str, dict[str, tuple[str, ...]]]) -> dict[str, Any]:
    return {at: {original: [*ids] for original, ids in own.items()} for at, own in lists.items()}


def held(network: Network) -> int:
    """How many parameters the standbys hold."""
    return sum(len(table) for table in standbys(network, ["s001", "s002"]).values())


def pairs() -> Iterator[tuple[str, float]]:
    return ((at, time) for at in ("p21", "p22") for time in (T1, T2))

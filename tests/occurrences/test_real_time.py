"""A Matcher of occurrences in real time: after each call its rows add up to what `detect` finds in the events."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reporting import drawn_states, states_every
from tests.searching import share

from cepheid import CepheidWarning, Limits, Matcher, OccurrencePattern, PatternError, detect
from cepheid.matchers.real_time.rollback_points import RollbackPoints
from occurrences.shop import at, shop
from occurrences.strategies import Row, expressions, shop_rows, with_variables

pytestmark = pytest.mark.filterwarnings("ignore:a matcher keeps what is open")

CONDITIONS = [
    "(?a:A; ?b:B)[a.price = b.price] -[c.price > a.price] ?c:C",
    "(?a:A & ?b:A) -[c.price = a.price] ?c:C",
    "(?a:A; ?b:(B + 1s))_5s[end(b) - start(a) > INTERVAL '2' SECOND]",
]
IN_CONTEXT = ["A; B; C", "A & (B; C)", "(A | B)_4s & C"]
CONTEXTS = ["snoop_recent", "chronicle", "continuous", "cumulative"]
patterns = st.one_of(
    st.builds(OccurrencePattern.policy, expressions | with_variables, st.sampled_from(["unrestricted", "recent"])),
    st.builds(lambda text: OccurrencePattern.of(text).policy("unrestricted"), st.sampled_from(CONDITIONS)),
    st.builds(
        lambda text, policy: OccurrencePattern.of(text).policy(policy),
        st.sampled_from(IN_CONTEXT),
        st.sampled_from(CONTEXTS),
    ),
).map(lambda pattern: pattern.taxonomy("type"))


class Sink:
    """Counts the rows that were emitted and not retracted."""

    def __init__(self) -> None:
        self.there = Counter[str]()
        self.late = 0

    def take(self, rows: pa.Table) -> None:
        for row in rows.to_pylist():
            match row["kind"]:
                case "insertion":
                    self.there[contents(row)] += 1
                case "retraction":
                    assert self.there[contents(row)]
                    self.there[contents(row)] -= 1
                case _:
                    self.late += 1


def contents(row: dict[str, Any]) -> str:
    """The contents of a row without its kind and the time of its emission."""
    return repr({name: value for name, value in row.items() if name not in ("kind", "detected_at")})


def found(rows: Sequence[Row], pattern: OccurrencePattern, as_of: datetime | None, options: Any) -> Counter[str]:
    """The rows that `detect` finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        wanted = detect(shop([*rows]), pattern, as_of=as_of, **{**options, "outputs": ("matches",)})
    return Counter(map(contents, wanted.to_pylist()))


@share(20)
@given(data=st.data(), pattern=patterns, lateness=st.sampled_from([None, 0, 2, 5, 40]), in_sequence=st.booleans())
def test_after_each_call(
    *, data: st.DataObject, pattern: OccurrencePattern, lateness: int | None, in_sequence: bool
) -> None:
    """Events arrive in any order. After each call, the rows emitted and not retracted are those that `detect` finds in
    all accepted events, with `as_of` at the clock. Matchers that are switched, or restored from snapshots, have the
    same rows in the end.
    """
    with drawn_states(data):
        check(data, pattern, lateness, in_sequence=in_sequence)


def check(data: st.DataObject, pattern: OccurrencePattern, lateness: int | None, *, in_sequence: bool) -> None:
    rows = data.draw(st.permutations(data.draw(shop_rows)))
    options = {"time": "at", "key": "user", "sequence": ["type", "price"] if in_sequence else None}
    arguments = {**options, "lateness": None if lateness is None else f"{lateness} seconds"}
    live = Matcher(pattern, shop([]), consistency="realtime", **arguments)
    sink, accepted, clock, watermark, late, at_once = Sink(), list[Row](), -9, -9, 0, True
    while rows:
        size = data.draw(st.integers(1, 4))
        batch, rows = rows[:size], rows[size:]
        sink.take(live.process(shop(batch)))
        in_time = [row for row in batch if row[0] > watermark]
        accepted, late = accepted + in_time, late + len(batch) - len(in_time)
        clock = max([clock, *(row[0] for row in in_time)])
        if lateness is not None:
            watermark = max(watermark, clock - lateness - 1)
        if data.draw(st.integers(0, 4)) == 0:
            advanced = clock + data.draw(st.integers(-9, 3))
            sink.take(live.advance_time(at(advanced)))
            clock, watermark = max(clock, advanced), max(watermark, advanced)
        assert sink.late == live.counts.late == late
        if at_once:
            assert +sink.there == found(accepted, pattern, at(clock), options)
        if data.draw(st.integers(0, 5)) == 0:
            state, counts = live.snapshot(), live.counts
            if data.draw(st.booleans()):
                live = Matcher(pattern, shop([]), consistency="conservative", **arguments)
                live.restore(state)
            assert live.counts == counts
        if data.draw(st.integers(0, 5)) == 0:
            at_once = not at_once
            sink.take(live.switch("realtime" if at_once else "conservative"))
    sink.take(live.finish())
    assert +sink.there == found(accepted, pattern, None, options)
    assert (live.counts.open_partial_matches, live.counts.matches) == (0, sink.there.total())


WINDOWED = ["(A; B)_5s - C", "((A & B)_4s; C)_9s", "((A + 2s; B)_3s | C) -[c.price > 1] ?c:A", "A & (B; C)_6s"]


@share(5)
@given(
    random=st.randoms(use_true_random=False),
    text=st.sampled_from(WINDOWED),
    policy=st.sampled_from(["unrestricted", "recent"]),
    every=st.sampled_from([1, 16, RollbackPoints.every]),
)
@pytest.mark.filterwarnings("ignore:policy 'recent' with the condition")
def test_long_lists(*, random: Any, text: str, policy: str, every: int) -> None:
    """Copies of a state do not share lists, also when a key has so many occurrences that old ones are dropped."""
    pattern = OccurrencePattern.of(text).taxonomy("type").policy(policy)
    options: dict[str, Any] = {"time": "at", "key": "user"}
    rows = [(n // 3, random.choice("AAABBC"), random.choice("uuuuv"), random.randint(0, 2)) for n in range(150)]
    arriving = sorted(rows, key=lambda row: row[0] + random.choice([0, 0, 0, 9]))
    with states_every(every):
        live, sink = Matcher(pattern, shop([]), lateness="9 seconds", consistency="realtime", **options), Sink()
        for begin in range(0, len(rows), 15):
            sink.take(live.process(shop(arriving[begin : begin + 15])))
            accepted = arriving[: begin + 15]
            clock = max(row[0] for row in accepted)
            assert +sink.there == found(accepted, pattern, at(clock), options)


# Small examples


def test_equal_events_keep_their_ids_when_replayed() -> None:
    """No rollback point lies between equal events: replayed alone, the second would get the id of the first."""
    options: dict[str, Any] = {"time": "at", "key": "user"}
    pattern = OccurrencePattern.of("A; B").taxonomy("type").policy("unrestricted")
    early, equal, last = [(n, "A", "u", 0) for n in range(5)], [(9, "A", "u", 0)] * 2, (12, "A", "u", 0)
    calls: list[list[Row]] = [[*early, *equal, last], [(10, "B", "u", 0)]]
    with states_every(1):
        live, sink = Matcher(pattern, shop([]), lateness="9 seconds", consistency="realtime", **options), Sink()
        for call in calls:
            sink.take(live.process(shop(call)))
    assert +sink.there == found([row for call in calls for row in call], pattern, at(12), options)


def matcher(text: str, policy: str = "unrestricted", **options: Any) -> Matcher:
    pattern = OccurrencePattern.of(text).taxonomy("type").policy(policy)
    return Matcher(pattern, shop([]), **{"time": "at", "lateness": "9 seconds", "consistency": "realtime", **options})


def changes(rows: pa.Table) -> list[tuple[str, ...]]:
    """The kind of each row, and the types of its events."""
    return [(row["kind"], *(event["type"] for event in row["events"] or ())) for row in rows.to_pylist()]


def test_negation_retracts() -> None:
    """An occurrence is emitted at once, and retracted when an event inside it arrives later."""
    live = matcher("(A; B) - C")
    assert changes(live.process(shop([(1, "A", "u", 1), (5, "B", "u", 1)]))) == [("insertion", "A", "B")]
    emitted = live.process(shop([(3, "C", "u", 1)]))
    assert changes(emitted) == [("retraction", "A", "B")]
    assert emitted.column("detected_at").to_pylist() == [at(5)]
    assert live.counts.matches == 0


def test_time_brings_temporal_events() -> None:
    """A temporal event is emitted once the clock has reached its time, through any event or through `advance_time`."""
    live = matcher("A + 2s", key="user")
    assert changes(live.process(shop([(1, "A", "u", 1), (2, "A", "w", 1)]))) == []
    (row,) = live.process(shop([(3, "A", "v", 1)])).to_pylist()
    assert (row["user"], row["match_end"]) == ("u", at(3))
    assert live.process(shop([(3, "B", "u", 1)])).num_rows == 0
    assert live.advance_time(at(5)).num_rows == 2


def test_events_of_the_time_of_the_clock() -> None:
    """An event whose time equals the clock still belongs to that instant."""
    live = matcher("A - B")
    assert changes(live.process(shop([(1, "A", "u", 1)]))) == [("insertion", "A")]
    assert changes(live.process(shop([(1, "B", "u", 1)]))) == [("retraction", "A")]
    live = matcher("(A + 2s) - B", key="user")
    live.process(shop([(1, "A", "u", 1)]))
    assert live.process(shop([(3, "C", "v", 1)])).column("kind").to_pylist() == ["insertion"]
    assert live.process(shop([(3, "B", "u", 1)])).column("kind").to_pylist() == ["retraction"]


def test_conservative() -> None:
    """A conservative matcher emits the same rows as one without a consistency, at the same calls."""
    live, plain = matcher("(A; B) - C", consistency="conservative"), matcher("(A; B) - C", consistency=None)
    for second, type_ in (1, "A"), (5, "B"), (4, "B"), (13, "A"), (14, "A"), (20, "C"):
        row = (second, type_, "u", 1)
        emitted, expected = (matcher_.process(shop([row])) for matcher_ in (live, plain))
        assert emitted.column("match_id").to_pylist() == expected.column("match_id").to_pylist()
        assert set(emitted.column("kind").to_pylist()) <= {"insertion"}
    assert live.counts.matches == plain.counts.matches == 2


def test_variables_may_stand_for_others() -> None:
    """An occurrence whose variables come to stand for other events is retracted and emitted again with the same
    match_id.
    """
    live = matcher("(?a:A & ?b:A) -[c.price = a.price] ?c:C", measures={"first": "a.price"})
    emitted = live.process(shop([(1, "A", "u", 1), (4, "A", "u", 2)])).to_pylist()
    (before,) = [row for row in emitted if row["match_start"] != row["match_end"]]
    rows = live.process(shop([(2, "C", "u", before["first"])])).to_pylist()
    assert [(row["kind"], row["match_id"], row["first"]) for row in rows] == [
        ("retraction", before["match_id"], before["first"]),
        ("insertion", before["match_id"], 3 - before["first"]),
    ]


def test_variables_of_what_minus_leaves() -> None:
    """The same holds if a minus without a condition excludes the former event of a variable."""
    live = matcher("(?a:A - C) & ?b:A", columns=["at"])
    live.process(shop([(1, "A", "u", 1)]))
    live.process(shop([(2, "A", "u", 1)]))
    rows = live.process(shop([(1, "C", "u", 1)])).to_pylist()
    pair = [(row["kind"], row["a"]["at"], row["b"]["at"]) for row in rows if row["match_start"] != row["match_end"]]
    assert pair == [("retraction", at(1), at(2)), ("insertion", at(2), at(1))]


def test_outputs_and_limits() -> None:
    """Matches and late events are emitted by default; limits apply per key, whatever is stored for a rollback."""
    live = matcher("A; B", lateness="1 second", limits=Limits(max_partial_matches=3))
    for second in range(3):
        live.process(shop([(second, "A", "u", 1)]))
    assert live.counts.open_partial_matches == 3
    assert live.process(shop([(0, "B", "u", 1)])).column("kind").to_pylist() == ["late"]
    only_late = matcher("A; B", lateness="1 second", outputs="late")
    rows = only_late.process(shop([(1, "A", "u", 1), (5, "B", "u", 1)]))
    assert (rows.num_rows, only_late.process(shop([(1, "A", "u", 1)])).num_rows) == (0, 1)


def test_partial_matches() -> None:
    """Listing partial matches is refused, which changes nothing: each key retains its open occurrences."""
    live = matcher("A; B", key="user")
    live.process(shop([(1, "B", "z", 1), (1, "A", "u", 1)]))
    with pytest.raises(PatternError, match="partial_matches: a pattern of occurrences has no stages"):
        live.partial_matches()
    assert changes(live.process(shop([(5, "B", "u", 1)]))) == [("insertion", "A", "B")]

"""Several interval patterns in one live matcher."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.intervals.events import EVENTS, NAMES, PAPER, Row, interval_pattern, matcher, table
from tests.intervals.strategies import patterns, tables

from cepheid.errors import CepheidWarning, ConditionError, MatcherFailed, PatternError, SchemaError, SnapshotError
from cepheid.intervals import IntervalMatcher, IntervalPattern

QUERIES = {
    "chain": f"{PAPER} REALTIME 1",
    "pair": "EVENT PAL(B b overlap D d) WITHIN 20 seconds",
    "short": "EVENT PAL(A a) WHERE end(a) - start(a) < INTERVAL 2 SECONDS WITHIN 20 seconds CONSISTENCY earliest",
}
PATTERNS = {name: interval_pattern(query) for name, query in QUERIES.items()}


def several(names: list[str] | None = None, **options: object) -> IntervalMatcher:
    chosen = {name: PATTERNS[name] for name in names or PATTERNS}
    return IntervalMatcher(chosen, table(EVENTS), **(NAMES | {"lateness": "8 seconds"} | options))  # type: ignore[arg-type]


ARRIVALS = st.lists(
    st.tuples(st.sampled_from("ABCD"), st.integers(0, 30), st.integers(0, 9), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=10)  # the random patterns below show more
@given(events=ARRIVALS, cut=st.integers(0, 12))
def test_each_pattern_emits_what_it_emits_alone(events: list[tuple[str, int, int, int]], cut: int) -> None:
    """Rows, ids and the time of emission are the same, late events too, and also after a snapshot."""
    rows = [(kind, start, start + length, f"{kind}{n}") for kind, start, length, n in events]
    together = several()
    alone = {
        name: IntervalMatcher(one.named(name), table(EVENTS), lateness="8 seconds", **NAMES)
        for name, one in PATTERNS.items()
    }
    for number, row in enumerate(rows):
        if number == cut:
            other = several()
            other.restore(together.snapshot())
            together = other
        made = together.process(table([row])).to_pylist()
        for name, one in alone.items():
            own = one.process(table([row]))
            assert [
                {key: row[key] for key in own.schema.names} for row in made if row["pattern"] == name
            ] == own.to_pylist()
    made = together.finish().to_pylist()
    assert len(made) == sum(one.finish().num_rows for one in alone.values())
    assert together.counts.events == len(rows)
    for count in ("matches", "late", "open_matches"):
        assert getattr(together.counts, count) == sum(getattr(one.counts, count) for one in alone.values())


@st.composite
def steps(draw: st.DrawFn, events: int) -> list[int | str]:
    """Calls of a matcher: how many events arrive, or another call."""
    calls: list[int | str] = []
    while events:
        arriving = draw(st.integers(1, events))
        calls += [arriving, *draw(st.lists(st.sampled_from(["forget", "restore", "switch", "advance"]), max_size=1))]
        events -= arriving
    return [*calls, "finish"]


@pytest.mark.filterwarnings("ignore::cepheid.errors.CepheidWarning")
@given(data=st.data())
def test_sharing_events_changes_nothing(data: st.DataObject) -> None:
    """Whatever the patterns, calls and snapshots, each pattern has the rows that it has alone, in their order; events
    are held once.
    """
    events = data.draw(tables(most=16))
    options: dict[str, Any] = {
        "time": ("start", "end"),
        "key": data.draw(st.sampled_from([None, "u"])),
        "columns": data.draw(st.sampled_from([None, ["id"], ["type"], ["n", "u"]])),
        "lateness": data.draw(st.sampled_from(["0 seconds", "4 seconds", "10 seconds", "3 events", None])),
        "late_by": data.draw(st.sampled_from(["start", "end"])),
        "nulls": "drop",
    }
    chosen, alone = dict[str, IntervalPattern](), dict[str, IntervalMatcher]()
    for number, pattern in enumerate(data.draw(st.lists(patterns(), min_size=2, max_size=4))):
        name = f"p{number}"
        with contextlib.suppress(PatternError, SchemaError):  # some are impossible, or never certain
            chosen[name] = pattern.taxonomy("type").named(name)
            alone[name] = IntervalMatcher(chosen[name], events, **options)
    chosen = {name: chosen[name] for name in alone}
    assume(len(chosen) > 1)
    together, at = IntervalMatcher(chosen, events, **options), 0
    for call in data.draw(steps(len(events))):
        match call:
            case int():
                given, at = events.slice(at, call), at + call
                made, own = together.process(given), {name: one.process(given) for name, one in alone.items()}
                assert together.counts.held <= at
            case "advance" if options["lateness"] != "3 events":
                time = datetime.fromtimestamp(data.draw(st.integers(0, 30)), UTC)
                made, own = together.advance_time(time), {name: one.advance_time(time) for name, one in alone.items()}
            case "switch":
                name = data.draw(st.sampled_from([*chosen]))
                consistency = data.draw(st.sampled_from(["conservative", "realtime"]))
                try:
                    own = {name: alone[name].switch(consistency)}
                except PatternError:
                    continue
                made = together.switch(consistency, pattern=name)
            case "finish":
                made, own = together.finish(), {name: one.finish() for name, one in alone.items()}
            case _:
                stored = together.snapshot()
                for one in alone.values():
                    one.snapshot()
                if call == "restore":
                    together = IntervalMatcher(chosen, events, **options)
                    together.restore(stored)
                continue
        for name, rows in own.items():
            mine = made.filter(pc.equal(made["pattern"], name)).select(rows.schema.names)
            assert mine.to_pylist() == rows.to_pylist()
        assert len(made) == sum(map(len, own.values()))
    for count in ("matches", "late", "open_matches", "dropped_matches"):
        assert getattr(together.counts, count) == sum(getattr(one.counts, count) for one in alone.values())


def test_an_event_is_held_once() -> None:
    """However many patterns need it, and only as long as one of them does; a snapshot has it once, too."""
    live = several()
    live.process(table([("B", 3, 6, "b1"), ("D", 5, 12, "d1")]))
    assert live.counts.held == 2
    other = several()
    other.restore(live.snapshot())
    assert other.counts == live.counts
    rows = [("ABCD"[i % 4], i, i + 1, "a long text to be held" * 50 + str(i)) for i in range(4, 1000)]
    live.process(table(rows))
    assert live.counts.held == 998
    alone = matcher(f"{PAPER} REALTIME 1")
    alone.process(table([("B", 3, 6, "b1"), ("D", 5, 12, "d1")]))
    alone.process(table(rows))
    both = len(live.snapshot())
    assert live.counts.held < 60
    assert both < 2 * len(alone.snapshot())
    live.advance_time("2024-05-01")
    live.snapshot()
    assert live.counts.held == 0


def test_a_snapshot_from_before_events_were_shared() -> None:
    """Each pattern has its own events there. They are the pattern's own until they are forgotten."""
    stored = (Path(__file__).parent / "several.3.snapshot").read_bytes()
    live, again, now = (several(columns=["id"]) for _ in range(3))
    live.restore(stored)
    now.process(table(EVENTS[:3]))
    now.process(table([("B", 3, 6, "b1"), ("B", 3, 7, "b2")]))
    assert (live.counts.matches, live.counts.open_matches) == (now.counts.matches, now.counts.open_matches)
    again.restore(live.snapshot())
    for one in (live, again):
        for name in PATTERNS:
            one.switch("realtime", pattern=name)
    for name in PATTERNS:
        now.switch("realtime", pattern=name)
    events = table([*EVENTS[3:4], ("A", 3, 4, "a2"), ("B", 3, 6, "b1")])
    expected = now.process(events)
    assert len(expected) > 4
    assert live.process(events) == again.process(events) == expected


def test_a_fault_in_one_pattern() -> None:
    """It names the pattern and the events. Then only a snapshot of before goes on, with all patterns."""
    dividing = interval_pattern("EVENT PAL(A a overlap B b) WHERE 1 / (length(a.id) - length(b.id)) > 0 WITHIN 1 hour")
    chosen = {"pair": PATTERNS["pair"], "bad": dividing}
    live, other = (IntervalMatcher(chosen, table(EVENTS), **NAMES, lateness="8 seconds") for _ in range(2))
    live.process(table([("A", 1, 4, "long"), ("B", 2, 5, "b")]))
    before = live.snapshot()
    with pytest.raises(ConditionError, match=r"pattern 'bad': division by zero .* at a \(.*'a7'.*\), b \(.*'b7'"):
        live.process(table([("A", 6, 8, "a7"), ("B", 7, 9, "b7")]))
    with pytest.raises(MatcherFailed):
        live.process(table(EVENTS))
    live.restore(before)
    other.restore(before)
    rows = table([("D", 4, 9, "dd"), ("B", 3, 11, "bb")])
    assert live.process(rows) == other.process(rows)
    assert live.counts == other.counts


def test_the_columns_are_those_of_all_patterns() -> None:
    """A variable that a pattern lacks is NULL; measures are given for each pattern."""
    live = several()
    names = ["kind", "pattern", "match_id", "match_start", "match_end", "detected_at", "a", "b", "c", "d", "event"]
    assert live.process(table(EVENTS)).schema.names == names
    measured = several(
        ["pair", "short"], measures={"pair": {"who": "b.id"}, "short": {"who": "a.id", "long": "end(a)"}}
    )
    assert measured.process(table(EVENTS)).schema.names[6:] == ["who", "long", "event"]


def test_one_pattern_switches_alone() -> None:
    """The others keep their consistency. Its name is needed where there are several."""
    live = several()
    events = table([("B", 3, 6, "b1"), ("D", 5, 12, "d1")])
    assert live.process(events).num_rows == 0
    assert live.switch("realtime", pattern="pair")["pattern"].to_pylist() == ["pair"]
    assert live.switch("conservative", pattern="chain").num_rows == 0
    with pytest.raises(PatternError, match="pattern: one of 'chain', 'pair', 'short' is expected, got None"):
        live.switch("realtime")
    with pytest.raises(PatternError, match="got 'pairs'"):
        live.diagram(pattern="pairs")
    assert live.diagram(pattern="pair").startswith("flowchart")
    assert [line for line in live.explain().split("\n") if line.startswith("Pattern")] == [
        f"Pattern {name!r}: intervals of" for name in PATTERNS
    ]
    assert live.explain().count("REALTIME 1") == 1


def test_snapshots_are_of_the_same_patterns() -> None:
    """A matcher of other patterns, or of one of them, refuses the snapshot and goes on unchanged."""
    live = several()
    live.process(table(EVENTS))
    for other in (several(["chain", "pair"]), several(["pair", "chain", "short"]), several(["chain"])):
        with pytest.raises(SnapshotError, match="the snapshot was made for another matcher"):
            other.restore(live.snapshot())
    one = matcher()
    with pytest.raises(
        SnapshotError, match=r"was made for several patterns \('chain', .*, and this matcher is for the"
    ):
        one.restore(live.snapshot())
    with pytest.raises(
        SnapshotError, match=r"for the pattern 'pattern' alone, and this matcher is for several patterns"
    ):
        live.restore(one.snapshot())
    with pytest.raises(SnapshotError, match="lateness was"):
        several(lateness="9 seconds").restore(live.snapshot())


def test_faults_and_warnings_name_the_pattern() -> None:
    """What cannot be found, and what is stored for ever."""
    wrong = {"pair": PATTERNS["pair"], "bad": interval_pattern("EVENT PAL(A a) WHERE a.x = 1")}
    with pytest.raises(PatternError, match=r"no column named 'x' \(pattern 'bad'"):
        IntervalMatcher(wrong, table(EVENTS), lateness=None, **NAMES)
    with pytest.warns(CepheidWarning, match="pattern 'long': a matcher keeps what is open"):
        IntervalMatcher(
            {"long": interval_pattern("EVENT PAL(A a overlap B b)")}, table(EVENTS), lateness="1 s", **NAMES
        )
    with pytest.raises(SchemaError, match="event_id: no column named 'number'"):
        several(event_id="number")


CHANGES: list[tuple[str, Row]] = [
    ("insertion", ("A", 0, None, "a1")),
    ("insertion", ("B", 3, 8, "b1")),
    ("insertion", (None, None, 5, "a1")),
    ("insertion", ("C", 9, None, "c1")),
    ("insertion", ("B", None, 4, "b1")),
    ("retraction", (None, None, None, "c1")),
    ("insertion", ("A", 20, 21, "a2")),
    ("insertion", ("A", 6, 7, "a3")),
]


def test_patterns_read_opened_and_revised_events_alike() -> None:
    """Each pattern emits what it emits alone; rows are counted once, and an id is in use as long as one needs it."""
    starts = interval_pattern("EVENT PAL((A a overlap B b) before C c) WITHIN 10 seconds OF STARTS REALTIME 1")
    patterns = {"starts": starts, "pair": PATTERNS["pair"]}
    schema = table(EVENTS).append_column("change", pa.array(["insertion"] * len(EVENTS))).schema
    options = NAMES | {"event_id": "id", "changes": "change", "open_for": "1 hour", "lateness": "8 seconds"}
    together = IntervalMatcher(patterns, schema, **options)
    alone = {name: IntervalMatcher(one.named(name), schema, **options) for name, one in patterns.items()}
    made: list[Any] = []
    for number, (change, row) in enumerate(CHANGES):
        if number == 4:
            other = IntervalMatcher(patterns, schema, **options)
            other.restore(together.snapshot())
            together = other
        given = table([row]).append_column("change", pa.array([change]))
        rows = together.process(given).to_pylist()
        for name, one in alone.items():
            own = one.process(given)
            assert [
                {key: row[key] for key in own.schema.names} for row in rows if row["pattern"] == name
            ] == own.to_pylist()
        made += rows
    assert {"insertion", "retraction", "late"} <= {row["kind"] for row in made}
    assert together.counts.events == len(CHANGES)
    assert together.counts.late == 2
    reusing = IntervalMatcher(
        {
            "one": interval_pattern("EVENT PAL(B b) WITHIN 1 second"),
            "both": interval_pattern("EVENT PAL(A a before B b) WITHIN 1 hour"),
        },
        table(EVENTS),
        **(options | {"changes": None, "nulls": "drop"}),
    )
    reusing.process(table([("A", 0, 1, "x"), ("C", 100, 101, "y")]))
    reusing.snapshot()
    assert reusing.process(table([("B", 102, 103, "x"), ("B", 102, 103, "z")]))["pattern"].to_pylist() == []
    assert reusing.counts.repeated == 1

"""Several interval patterns in one live matcher."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import shake_128
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.intervals.events import EVENTS, NAMES, PAPER, Row, interval_pattern, matcher, table
from tests.intervals.strategies import patterns, tables
from tests.searching import share

from cepheid.errors import (
    CepheidWarning,
    ConditionError,
    LimitExceeded,
    MatcherFailed,
    PatternError,
    SchemaError,
    SnapshotError,
)
from cepheid.intervals import IntervalMatcher, IntervalPattern
from cepheid.matchers.counts import READ_COUNTS
from cepheid.plan.limits import Limits

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


@st.composite
def rows_of(draw: st.DrawFn, events: pa.Table, *, revise: bool) -> pa.Table:
    """Rows that open and close these events, or have them whole, almost in their order. With `revise`, some give an
    event another end, or withdraw it.
    """
    rows = list[tuple[int, int, dict[str, Any]]]()
    for number, event in enumerate(events.to_pylist()):
        whole = event | {"change": "insertion"}
        opens, closes = whole | {"end": None}, whole | {"start": None}
        longer, withdraws = closes | {"end": event["end"] + timedelta(seconds=2)}, whole | {"change": "retraction"}
        revised = [[whole, longer], [opens, closes, withdraws], [whole, withdraws]] if revise else []
        place = 3 * number
        for row in draw(st.sampled_from([[whole], [opens, closes], [opens, closes], [opens], *revised])):
            rows.append((place, len(rows), row))
            place += draw(st.integers(0, 12))
    schema = events.schema.append(pa.field("change", pa.string()))
    return pa.Table.from_pylist([row for _, _, row in sorted(rows, key=lambda one: one[:2])], schema)


def some_patterns(
    data: st.DataObject, columns: pa.Schema, options: dict[str, Any]
) -> tuple[dict[str, IntervalPattern], dict[str, IntervalMatcher]]:
    """Two to four patterns, and a matcher of each alone."""
    chosen, alone = dict[str, IntervalPattern](), dict[str, IntervalMatcher]()
    for number, pattern in enumerate(data.draw(st.lists(patterns(), min_size=2, max_size=4))):
        name = f"p{number}"
        with contextlib.suppress(PatternError, SchemaError):  # some are impossible, or never certain
            chosen[name] = pattern.taxonomy("type").named(name)
            alone[name] = IntervalMatcher(chosen[name], columns, **options)
    assume(len(alone) > 1)
    return {name: chosen[name] for name in alone}, alone


def check_calls(data: st.DataObject, rows: pa.Table, options: dict[str, Any]) -> None:
    """Whatever the patterns, calls and snapshots, each pattern has the rows that it has alone, in their order."""
    chosen, alone = some_patterns(data, rows.schema, options)
    together, at = IntervalMatcher(chosen, rows.schema, **options), 0
    for call in data.draw(steps(len(rows))):
        match call:
            case int():
                given, at = rows.slice(at, call), at + call
                made, own = together.process(given), {name: one.process(given) for name, one in alone.items()}
                assert together.counts.held <= at
            case "advance" if options["lateness"] != "3 events":
                time = datetime.fromtimestamp(data.draw(st.integers(0, 30)), UTC)
                made, own = together.advance_time(time), {name: one.advance_time(time) for name, one in alone.items()}
            case "switch":
                name = data.draw(st.sampled_from([*chosen]))
                consistency = data.draw(st.sampled_from(["conservative", "earliest", "realtime"]))
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
                    together = IntervalMatcher(chosen, rows.schema, **options)
                    together.restore(stored)
                continue
        for name, expected in own.items():
            mine = made.filter(pc.equal(made["pattern"], name)).select(expected.schema.names)
            assert mine.to_pylist() == expected.to_pylist()
        assert len(made) == sum(map(len, own.values()))
    for count in ("matches", "late", "open_matches", "dropped_matches"):
        assert getattr(together.counts, count) == sum(getattr(one.counts, count) for one in alone.values())
    for count in READ_COUNTS:
        assert {getattr(one.counts, count) for one in alone.values()} == {getattr(together.counts, count)}


@pytest.mark.filterwarnings("ignore::cepheid.errors.CepheidWarning")
@share(40)
@given(data=st.data())
def test_sharing_events_changes_nothing(data: st.DataObject) -> None:
    """Events are stored once for all patterns, and each pattern finds in them what it finds alone."""
    options: dict[str, Any] = {
        "time": ("start", "end"),
        "key": data.draw(st.sampled_from([None, "u"])),
        "columns": data.draw(st.sampled_from([None, ["id"], ["type"], ["n", "u"]])),
        "lateness": data.draw(st.sampled_from(["0 seconds", "4 seconds", "10 seconds", "3 events", None])),
        "late_by": data.draw(st.sampled_from(["start", "end"])),
        "nulls": "drop",
    }
    check_calls(data, data.draw(tables(most=16)), options)


@pytest.mark.filterwarnings("ignore::cepheid.errors.CepheidWarning")
@share(40)
@given(data=st.data(), revise=st.booleans())
def test_sharing_events_that_rows_open_changes_nothing(data: st.DataObject, revise: bool) -> None:  # noqa: FBT001
    """The rows are read once, and their events stored once. No id is used again: that depends on what all need."""
    bounds = ["60 seconds", None] if revise else ["0 seconds", "4 seconds", "10 seconds", None]
    options: dict[str, Any] = {
        "time": ("start", "end"),
        "event_id": "id",
        "changes": "change" if revise else None,
        "open_for": data.draw(st.sampled_from([None, "3 seconds", "20 seconds"])),
        "key": data.draw(st.sampled_from([None, "u"])),
        "columns": data.draw(st.sampled_from([None, ["id"], ["type", "end"], ["n", "u"]])),
        "lateness": data.draw(st.sampled_from(bounds)),
        "late_by": data.draw(st.sampled_from(["start", "end"])),
        "nulls": "drop",
    }
    check_calls(data, data.draw(rows_of(data.draw(tables(most=8)), revise=revise)), options)


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


def by_id() -> IntervalMatcher:
    """A matcher of patterns in events that rows open, revise and withdraw, of which one reads an end in SQL."""
    chain = "EVENT PAL((A a overlap B b) before C c) WHERE end(b) < c.begins WITHIN 10 seconds OF STARTS REALTIME 1"
    chosen = {"starts": interval_pattern(chain), "pair": PATTERNS["pair"]}
    schema = table(EVENTS).schema.append(pa.field("change", pa.string()))
    options = NAMES | {"event_id": "id", "changes": "change", "open_for": "1 hour", "nulls": "drop"}
    return IntervalMatcher(chosen, schema, lateness="8 seconds", **options)


def arrives(live: IntervalMatcher, change: str, row: Row) -> pa.Table:
    return live.process(table([row]).append_column("change", pa.array([change])))


def test_a_snapshot_from_before_opened_events_were_shared() -> None:
    """There each pattern has its own events, and the same rows that others may close."""
    live, again, now = by_id(), by_id(), by_id()
    live.restore((Path(__file__).parent / "several.3.by_id.snapshot").read_bytes())
    for change, row in [*CHANGES[:5], ("insertion", ("B", 4, 5, None))]:
        arrives(now, change, row)
    assert replace(live.counts, held=0) == replace(now.counts, held=0)
    again.restore(live.snapshot())
    emitted = list[tuple[str, str]]()
    for change, row in [("insertion", ("B", None, 8, "b1")), ("insertion", ("D", 6, 12, "d1")), *CHANGES[5:]]:
        expected = arrives(now, change, row)
        assert arrives(live, change, row) == arrives(again, change, row) == expected
        emitted += [*zip(expected["kind"].to_pylist(), expected["pattern"].to_pylist(), strict=True)]
    assert live.finish() == again.finish() == now.finish()
    assert emitted == [
        ("insertion", "starts"),
        ("retraction", "starts"),
        ("insertion", "pair"),
        ("late", "starts"),
        ("late", "pair"),
    ]


def long_id(number: int) -> str:
    """A text that cannot be compressed below 300 bytes."""
    return shake_128(str(number).encode()).hexdigest(300)


def test_opened_events_are_held_once() -> None:
    """Open and closed, and in snapshots with the rows that later ones may close, which do not repeat per pattern."""
    starts = "EVENT PAL(A a overlap B b) WITHIN 30 seconds OF STARTS REALTIME 1"
    options = NAMES | {"event_id": "id", "open_for": "1 hour", "lateness": "8 seconds"}
    one, several = (
        IntervalMatcher({f"p{n}": interval_pattern(starts) for n in range(count)}, table(EVENTS), **options)
        for count in (1, 4)
    )
    for live in (one, several):
        for i in range(40):
            live.process(table([("AB"[i % 2], i, None if i % 3 else i + 2, long_id(i))]))
    assert one.counts.held == several.counts.held == 40
    assert len(several.snapshot()) < 2 * len(one.snapshot())
    assert one.counts.held == several.counts.held == 40
    other = IntervalMatcher({f"p{n}": interval_pattern(starts) for n in range(4)}, table(EVENTS), **options)
    other.restore(several.snapshot())
    closing = table([("A", None, 40, long_id(38)), ("B", 39, 45, "b")])
    made = other.process(closing)
    assert len(made) == 4 * len(one.process(closing)) > 0
    assert several.process(closing) == made
    assert other.counts == several.counts


def test_a_limit_beside_shared_events() -> None:
    """A pattern over its limit is named, or drops only its own matches."""
    events = [*(("A", 1, 9 + n, f"a{n}") for n in range(4)), ("B", 5, 20, "b1")]
    every = interval_pattern("EVENT PAL(A a overlap B b) WITHIN 1 minute REALTIME 1")
    chosen = {"some": interval_pattern("EVENT PAL(A a overlap B b) WHERE a.id = 'a1' WITHIN 1 minute"), "all": every}
    for opening in ({}, {"event_id": "id", "open_for": "1 hour"}):
        options = NAMES | opening | {"lateness": "1 minute"}
        live = IntervalMatcher(chosen, table(EVENTS), limits=Limits(max_matches_per_event=2), **options)
        before = live.snapshot()
        with pytest.raises(LimitExceeded, match=r"pattern 'all': .*more than 2 matches \(max_matches_per_event\)"):
            live.process(table(events))
        with pytest.raises(MatcherFailed):
            live.finish()
        live.restore(before)
        assert len(live.process(table(events[1:3] + events[4:]))) == 2
        assert live.finish()["pattern"].to_pylist() == ["some"]
    dropping = Limits(max_matches_per_event=2, on_limit="drop")
    live = IntervalMatcher(chosen, table(EVENTS), lateness="1 minute", limits=dropping, **NAMES)
    assert live.process(table(events))["pattern"].to_pylist() == ["all", "all"]
    assert live.counts.dropped_matches > 0
    assert live.finish()["pattern"].to_pylist() == ["some"]


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
    for opening in ({}, {"event_id": "id", "open_for": "1 hour"}):
        single = {"pair": PATTERNS["pair"], "bad": interval_pattern("EVENT PAL(B b) WHERE 1 / (length(b.id) - 2) > 0")}
        failing = IntervalMatcher(single, table(EVENTS), lateness=None, **(NAMES | opening))
        with pytest.raises(ConditionError, match=r"pattern 'bad': division by zero .*id = 'b1'"):
            failing.process(table(EVENTS))
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

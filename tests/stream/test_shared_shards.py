"""Shards in which several interval patterns share their events, called in the way Spark calls them."""

from __future__ import annotations

import contextlib
import json
import pickle
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.intervals.events import EVENTS, NAMES, interval_pattern, table
from tests.intervals.strategies import patterns, tables
from tests.intervals.test_several_live import long_id, rows_of
from tests.searching import share
from tests.stream.test_shard import Stream, as_packed

from cepheid.errors import EventError, LimitExceeded, PatternError, SchemaError, SnapshotError
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.hosts.in_process.prepare import lifted, timed
from cepheid.hosts.shards.log import MatcherCache
from cepheid.hosts.spark.stream.shard import Matching
from cepheid.intervals import IntervalPattern
from cepheid.matchers.pattern_events import projections
from cepheid.matchers.working_set import with_any
from cepheid.plan.limits import Limits
from cepheid.plan.plan_set import relevant_to_any
from cepheid.requests.request_of import request_of


class Several:
    """Patterns that are planned together, as for a stream."""

    def __init__(
        self, chosen: dict[str, IntervalPattern], columns: pa.Schema, options: dict[str, Any], *, late: bool = True
    ) -> None:
        outputs = ("matches", "late") if late else ("matches",)
        self.request = request_of(chosen, outputs=outputs, endless=True, **options)
        self._engine = DuckDbEngine(time_zone="UTC")
        self.plans: Any = plans_in_process(columns, self.request, self._engine)
        family, self.columns = self.request.family, columns
        self.only_relevant = not late and self.request.event_id is None
        self.relevant_to = family.compile(self.plans).relevant_to if self.only_relevant else [None] * len(chosen)
        self.runners: list[Any] = [family.runner(plan, "start") for plan in self.plans.each]
        if self.request.event_id is not None:
            open_for, drops = self.request.open_for, self.request.nulls == "drop"
            self.runners = [family.opened_by_rows(one, drops=drops, open_for=open_for) for one in self.runners]
        self.together = family.sharing(self.plans, self.runners, self.nothing.schema, only_relevant=self.only_relevant)

    def lifted(self, rows: pa.Table) -> Any:
        """The events as shards get them that have all of the patterns."""
        found = lifted(timed(rows, self.request), self.plans, self._engine)
        return with_any(found, relevant_to_any(self.relevant_to))

    @property
    def nothing(self) -> pa.RecordBatch:
        return self.lifted(self.columns.empty_table()).data

    def stream(self, number: int | None = None) -> ShardsOf:
        """The stream of all patterns, or of one of them alone."""
        return ShardsOf(self, number)


@dataclass(init=False)
class ShardsOf(Stream):
    """The shards of several patterns, or of one of them."""

    def __init__(self, several: Several, number: int | None) -> None:
        request, columns = several.request, several.columns
        options = {"key": request.key[0]} if request.key else {"key": "type"}
        super().__init__(several.plans, columns, options, timedelta(0))
        self._several, self._number = several, number
        self._own = projections(several.plans, several.relevant_to)
        each = {
            plan.pattern.name: request.family.compatibility(runner, "UTC")
            for plan, runner in zip(several.plans.each, several.runners, strict=True)
        }
        if number is None:
            self.runner, made_for = several.together, {"time_zone": "UTC", "each": each}
        else:
            self.runner, made_for = several.runners[number], [*each.values()][number]
        packed, nothing = pickle.dumps(self.runner), self._lifted(columns.empty_table()).schema
        self.matching = Matching(packed, nothing, json.dumps(made_for), of_matches=False, named=True, asked="")

    def __post_init__(self) -> None:
        """There are several plans."""

    def call(self, rows: pa.Table | None) -> list[pa.Table]:
        """What the only shard makes of these rows; None: its timer fires."""
        return self._call(0, [] if rows is None else [as_packed(self._lifted(rows))])

    def _lifted(self, rows: pa.Table) -> pa.RecordBatch:
        batch = self._several.lifted(rows)
        return (batch if self._number is None else self._own[self._number].of(batch)).data


def some_patterns(data: st.DataObject, columns: pa.Schema, options: dict[str, Any], *, late: bool) -> Several:
    """Two to four patterns that can be found in a stream."""
    chosen = dict[str, IntervalPattern]()
    for number, pattern in enumerate(data.draw(st.lists(patterns(), min_size=2, max_size=4))):
        one = {f"p{number}": pattern.taxonomy("type").named(f"p{number}")}
        with contextlib.suppress(PatternError, SchemaError):  # some are impossible
            Several(one, columns, options, late=late)
            chosen |= one
    assume(len(chosen) > 1)
    return Several(chosen, columns, options, late=late)


def called(stream: ShardsOf, rows: pa.Table) -> list[dict[str, Any]]:
    """What one shard makes of all these rows, and when its timer fires."""
    found = stream.call(rows) if rows.num_rows else []
    if stream.timers.get(0, stream.watermark + 1) <= stream.watermark:
        found += stream.call(None)
    return [row for part in found for row in part.to_pylist()]


def with_keys(events: pa.Table) -> pa.Table:
    """Shards get only events with a key."""
    return events.set_column(4, "u", pc.fill_null(events["u"], "z"))


def check_batches(data: st.DataObject, rows: pa.Table, options: dict[str, Any], *, late: bool) -> None:
    """Whatever the micro-batches, workers and sizes of the log, each pattern has the rows that it has alone."""
    several = some_patterns(data, rows.schema, options, late=late)
    together, alone = several.stream(), [several.stream(number) for number in range(len(several.runners))]
    workers = [MatcherCache() for _ in range(2)]
    small_log = data.draw(st.sampled_from([0, 5000]))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=5)) | {0, len(rows)})
    for start, end in [*pairwise(cuts), (0, 0)]:
        watermark = together.watermark + 1000 * data.draw(st.integers(0, 12)) + 100_000 * (start == end)
        for stream in (together, *alone):
            stream.small_log, stream.watermark = small_log, watermark
        together.cache = data.draw(st.sampled_from([MatcherCache(), *workers]))
        made, expected = called(together, rows[start:end]), [called(stream, rows[start:end]) for stream in alone]
        assert made == sorted((row for own in expected for row in own), key=lambda row: row["pattern"])
    for stream in (together, *alone):  # one alone is not called to find that it has less open
        assert called(stream, rows[:0]) == []
        if stream.states:
            assert stream.call(None) == []
    assert {*together.counts} == {name for stream in alone for name in stream.counts} != set()
    for name, count in together.counts.items():
        assert count == sum(stream.counts.get(name, 0) for stream in alone), name
    assert bool(together.states) == any(stream.states for stream in alone)


@pytest.mark.filterwarnings("ignore::cepheid.errors.CepheidWarning")
@share(30)
@given(data=st.data(), late=st.booleans(), key=st.sampled_from([None, "u"]))
def test_sharing_events_changes_nothing(data: st.DataObject, late: bool, key: str | None) -> None:  # noqa: FBT001
    """Events are stored once for all patterns, and each pattern finds in them what it finds alone."""
    columns = data.draw(st.sampled_from([None, ["id"], ["type"], ["n", "u"]]))
    rows = with_keys(data.draw(tables(most=16)))
    check_batches(data, rows, {"time": ("start", "end"), "key": key, "columns": columns}, late=late)


@pytest.mark.filterwarnings("ignore::cepheid.errors.CepheidWarning")
@share(30)
@given(data=st.data(), key=st.sampled_from([None, "u"]))
def test_sharing_events_that_rows_open_changes_nothing(data: st.DataObject, key: str | None) -> None:
    """The rows are read once, and their events stored once. No id is used again: that depends on what all need."""
    options: dict[str, Any] = {
        "time": ("start", "end"),
        "event_id": "id",
        "open_for": data.draw(st.sampled_from([None, "3 seconds", "20 seconds"])),
        "key": key,
        "columns": data.draw(st.sampled_from([None, ["id"], ["type", "end"], ["n", "u"]])),
        "nulls": "drop",
    }
    rows = data.draw(rows_of(with_keys(data.draw(tables(most=8))), revise=False)).drop_columns(["change"])
    check_batches(data, rows, options, late=True)


@pytest.mark.filterwarnings("ignore::cepheid.errors.CepheidWarning")
@share(20)
@given(data=st.data(), late=st.booleans())
def test_shards_are_divided_and_joined(data: st.DataObject, late: bool) -> None:  # noqa: FBT001
    """Divided by key and joined again, in another order, they go on as the undivided one does."""
    rows = with_keys(data.draw(tables(most=16)))
    several = some_patterns(data, rows.schema, {"time": ("start", "end"), "key": "u"}, late=late)
    runner, cut = several.together, data.draw(st.integers(1, len(rows)))
    whole, now = runner.matcher(), data.draw(st.integers(0, 20)) * 1_000_000
    whole.process(several.lifted(rows[:cut]))
    whole.advance_time(now)
    made_for = {"each": {plan.pattern.name: {} for plan in several.plans.each}}
    stored, names = whole.snapshot(made_for, {}), sorted(whole.open_keys)
    pieces = []
    for own in data.draw(st.permutations([names[:1], names[1:], []])):
        piece, _ = runner.restored(stored, made_for, several.nothing.schema)
        piece.keep_only(own)
        assert {*piece.open_keys} == {*own}
        pieces.append(piece.snapshot(made_for, {}))
    joined, _ = runner.restored(runner.joined(pieces), made_for, several.nothing.schema)
    assert joined.open == whole.open
    for call in (lambda one: one.process(several.lifted(rows[cut:])), lambda one: one.advance_time(200_000_000)):
        assert sorted(map(repr, call(joined).to_pylist())) == sorted(map(repr, call(whole).to_pylist()))
    assert joined.is_idle == whole.is_idle


PAIRS = {
    name: interval_pattern(f"EVENT PAL(A a overlap B b) WITHIN 60 seconds OF STARTS CONSISTENCY {name}").named(name)
    for name in ("earliest", "conservative", "realtime")
}


@pytest.mark.parametrize("by_rows", [False, True])
def test_an_event_is_stored_once(by_rows: bool) -> None:  # noqa: FBT001
    """In the log and in the snapshot, however many patterns need it."""
    opening: dict[str, Any] = {"event_id": "id", "open_for": "1 hour"} if by_rows else {}
    events = [("AB"[i % 2], i, i + 9, long_id(i)) for i in range(100)]
    sizes = []
    for chosen in (["realtime"], [*PAIRS]):
        several = Several({name: PAIRS[name] for name in chosen}, table(EVENTS).schema, NAMES | opening)
        stream = several.stream()
        made = [*called(stream, table(events[:70])), *called(stream, table(events[70:]))]
        assert {row["pattern"] for row in made if row["pattern"] == "realtime"}
        state = stream.states[0]
        sizes.append((len(state.first), sum(len(entry.events) for entry in state.entries)))
    (one_first, one_log), (first, log) = sizes
    assert one_first > 0 < one_log
    assert first < 1.5 * one_first
    assert log < 1.2 * one_log


def test_faults_name_their_pattern() -> None:
    """A limit that one pattern exceeds, and a state that another query has written."""
    events = [*(("A", 1, 9 + n, f"a{n}") for n in range(4)), ("B", 5, 20, "b1")]
    options = NAMES | {"limits": Limits(max_matches_per_event=2)}
    several = Several(PAIRS, table(EVENTS).schema, options)
    stream = several.stream()
    with pytest.raises(LimitExceeded, match=r"^pattern 'earliest': .*max_matches_per_event"):
        called(stream, table(events))
    called(stream, table(events[2:]))
    stream.cache = MatcherCache()
    other = Several({name: PAIRS[name] for name in [*PAIRS][:2]}, table(EVENTS).schema, options).stream()
    other.states, other.timers = stream.states, stream.timers
    with pytest.raises(SnapshotError, match="belongs to another query: "):
        other.call(table(events[:1]))


@pytest.mark.parametrize("nulls", ["drop", "error"])
def test_an_id_that_is_still_needed(nulls: str) -> None:
    """It cannot be used again as long as a pattern needs its event, whichever that is."""
    before = interval_pattern("EVENT PAL(A a before B b) WITHIN 60 seconds OF STARTS")
    chosen = {name: before.named(name) for name in ("one", "other")}
    options = NAMES | {"event_id": "id", "nulls": nulls}
    stream = Several(chosen, table(EVENTS).schema, options).stream()
    called(stream, table([("A", 1, 2, "i1")]))
    again = table([("A", 20, 21, "i1"), ("B", 23, 24, "i2")])
    if nulls == "error":
        with pytest.raises(EventError, match="has the id of an event that is there already"):
            called(stream, again)
        return
    called(stream, again)
    stream.watermark = 300_000
    made = called(stream, again[:0])
    assert [(row["pattern"], row["match_start"].second) for row in made] == [("one", 1), ("other", 1)]

"""Shards, called in the way Spark calls them, emit what detect finds for all events that are in time."""

from __future__ import annotations

import json
import pickle
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Case, Row, cases, events, microseconds
from tests.live.events import PAIR, at, summaries
from tests.live.events import SCHEMA as PAIR_SCHEMA
from tests.live.events import events as pair_events
from tests.live.test_any_delivery import counted, table
from tests.searching import share

from cepheid import CepheidWarning, LimitExceeded, Limits, Pattern, SnapshotError, detect
from cepheid.events.narrow import narrowed
from cepheid.families.family import LateBy
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.hosts.in_process.prepare import lifted, timed
from cepheid.hosts.shards import log as stream_state
from cepheid.hosts.shards.arrow_stream import to_narrow_stream, to_stream
from cepheid.hosts.shards.log import MatcherCache
from cepheid.hosts.shards.store import Entry, Head
from cepheid.hosts.spark.stream.ledger import packed_asked
from cepheid.hosts.spark.stream.packing import unpacked_runner
from cepheid.hosts.spark.stream.processor import head_of, stored_head
from cepheid.hosts.spark.stream.shard import Matching, Shard, check_ledger, step
from cepheid.plan.lifted import OutputName
from cepheid.requests.ledger import stored_request
from cepheid.requests.request_of import request_of

SECOND = timedelta(seconds=1)
OUTPUTS: tuple[OutputName, ...] = ("matches", "timeouts", "late")


@dataclass
class MemoryStore:
    """A store in memory."""

    stored_head: Head | None = None
    first: bytes = b""
    entries: list[Entry] = field(default_factory=list)

    def head(self) -> Head | None:
        return self.stored_head

    def snapshot(self) -> bytes:
        return self.first

    def log(self) -> list[Entry]:
        return self.entries

    def entry(self, number: int) -> Entry:
        return self.entries[number - 1]

    def write(self, head: Head, snapshot: bytes, before: Head | None) -> None:
        assert len(self.entries) == (0 if before is None else before.entries)
        self.stored_head, self.first, self.entries = head, snapshot, []

    def append(self, head: Head, entry: Entry | None) -> None:
        self.stored_head, self.entries = head, self.entries if entry is None else [*self.entries, entry]

    def clear(self, before: Head) -> None:
        assert len(self.entries) == before.entries
        self.stored_head, self.first, self.entries = None, b"", []


def as_packed(events: pa.RecordBatch) -> bytes:
    """The events as a shard gets them: narrow, or, if their number is odd, as few events and earlier versions are."""
    return to_stream(events) if len(events) % 2 else to_narrow_stream(narrowed(events, 1))


@dataclass
class Stream:
    """A query without Spark: it does what the query does for each micro-batch, with this number of shards."""

    pattern: Any
    columns: pa.Schema
    options: dict[str, Any]
    lateness: timedelta
    shards: int = 2
    watermark: int = 0
    """Milliseconds."""
    latest: int = 0
    states: defaultdict[int, MemoryStore] = field(default_factory=lambda: defaultdict(MemoryStore))
    timers: dict[int, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    cache: MatcherCache = field(default_factory=MatcherCache)
    small_log: int = stream_state.SMALL_LOG
    outputs: tuple[OutputName, ...] = OUTPUTS
    time: str = "at"
    """The column with the watermark."""

    def __post_init__(self) -> None:
        request = request_of(self.pattern, outputs=self.outputs, endless=True, **self.options)
        self._engine = DuckDbEngine(time_zone="UTC")
        self._request = request
        self.plan: Any = plans_in_process(self.columns, request, self._engine).only
        late_by: LateBy = "end" if self.time == request.end else "start"
        self.runner: Any = request.family.runner(self.plan, late_by)
        if request.event_id is not None:
            self.runner = request.family.opened_by_rows(self.runner, drops=False, open_for=request.open_for)
        packed = pickle.dumps(self.runner)
        made = json.dumps(request.family.compatibility(self.runner, "UTC"))
        asked = packed_asked(stored_request(request, request.only, "UTC", {}, late_by))
        columns = self._lifted(self.columns.empty_table()).schema
        self.matching = Matching(packed, columns, made, of_matches=False, named=False, asked=asked)

    def batch(self, rows: pa.Table) -> pa.Table:
        """The rows emitted for these events; then the watermark advances."""
        found = []
        for shard, value in self.values(rows).items():
            found += self._call(shard, [value])
        for shard, timer in [*self.timers.items()]:
            if timer <= self.watermark:
                found += self._call(shard, [])
        if rows.num_rows:
            self.latest = max(self.latest, *(microseconds(time) // 1000 for time in rows.column(self.time).to_pylist()))
            self.watermark = max(self.watermark, self.latest - self.lateness // timedelta(milliseconds=1))
        return pa.concat_tables(found) if found else pa.table({})

    def values(self, rows: pa.Table) -> dict[int, bytes]:
        """The events of each shard that has any."""
        shards = [sum(map(ord, name)) % self.shards for name in rows.column(self.options["key"]).to_pylist()]
        each = {shard: [place == shard for place in shards] for shard in sorted({*shards})}
        return {shard: as_packed(self._lifted(rows.filter(pa.array(mine)))) for shard, mine in each.items()}

    def processed_by(self, worker: MatcherCache, watermark: datetime, rows: pa.Table) -> list[pa.Table]:
        """The rows that this worker emits for these events, of any key, at this watermark."""
        self.cache, self.watermark = worker, microseconds(watermark) // 1000
        return self._call(0, [as_packed(self._lifted(rows))])

    def called(self, shard: int) -> Shard:
        return Shard(self.states[shard], self.cache, ("query", shard))

    def _call(self, shard: int, values: Sequence[bytes]) -> list[pa.Table]:
        with pytest.MonkeyPatch.context() as change:
            change.setattr(stream_state, "SMALL_LOG", self.small_log)
            stepped = step(self.matching, self.called(shard), values, self.watermark)
        assert stepped.former_timer == self.timers.pop(shard, None)
        state = self.states[shard]
        assert stepped.state_bytes == len(state.first) + sum(len(entry.events) for entry in state.entries)
        head, open_ = state.stored_head, tuple(made.open for made in stepped.each)
        assert sum(open_) == (0 if head is None else head.open)
        if head is not None:
            assert head.open_of_each == (open_ if len(open_) > 1 else ())
            assert head_of(stored_head(head)) == head
        if self.states[shard].stored_head is None:
            assert self.states.pop(shard) == MemoryStore()
        if stepped.timer is not None:
            self.timers[shard] = stepped.timer
            assert stepped.timer > self.watermark
        counts = Counter(self.counts)
        for made in stepped.each:
            counts.update(made.counts)
        self.counts = {**counts}
        values = [made.rows for made in stepped.each if made.rows is not None]
        return [pa.ipc.open_stream(value).read_all() for value in values]

    def _lifted(self, rows: pa.Table) -> pa.RecordBatch:
        return lifted(timed(rows, self._request), self.plan, self._engine).data


@st.composite
def deliveries(draw: st.DrawFn, rows: Sequence[Row], lateness: int) -> list[list[Row]]:
    """Micro-batches in which some events may be late."""
    delays = [timedelta(seconds=draw(st.integers(0, lateness + 3))) for _ in rows]
    order = sorted(range(len(rows)), key=lambda i: rows[i]["at"] + delays[i])
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(rows) - 1)), max_size=6)) | {0, len(rows)})
    return [[rows[i] for i in draw(st.permutations(order[start:end]))] for start, end in pairwise(cuts)]


@share(30)
@given(data=st.data(), case=cases(), lateness=st.sampled_from([0, 1, 5]), in_sequence=st.booleans())
def test_any_micro_batches(*, data: st.DataObject, case: Case, lateness: int, in_sequence: bool) -> None:
    """Any order of arrival, any micro-batches: an event before the watermark is late, and for all other events the
    matches are those of a finite input. When time has passed all deadlines, no timers are left.
    """
    rows = data.draw(events(ties=True))
    options = {"key": "device", "time": "at", "sequence": "id" if in_sequence else None}
    stream = Stream(case.pattern, SCHEMA, options, lateness * SECOND)
    stream.small_log = data.draw(st.sampled_from([0, 5000, stream.small_log]))
    found, late, in_time = [], [], []
    workers = MatcherCache(), MatcherCache()
    for batch in data.draw(deliveries(rows, lateness)):
        for row in batch:
            (late if microseconds(row["at"]) < stream.watermark * 1000 else in_time).append(row)
        stream.cache = data.draw(st.sampled_from([MatcherCache(), *workers]))  # a worker that continues, or a new one
        found.append(stream.batch(table(batch)))
    as_of = FIRST + 1000 * SECOND
    stream.watermark = microseconds(as_of) // 1000 + 1
    found += [stream.batch(SCHEMA.empty_table())]
    given = pa.concat_tables(
        [part for part in found if part.num_rows] or [pa.table({"kind": pa.array([], pa.string())})]
    )
    kinds = given.column("kind").to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        in_order = sorted(in_time, key=lambda row: (row["device"], row["at"], row["id"]))
        expected = detect(table(in_order), case.pattern, outputs=OUTPUTS, as_of=as_of, **options)
    not_late = given.filter(pa.array([kind != "late" for kind in kinds], pa.bool_()))
    assert counted(not_late) == counted(expected)
    late_ids = [row["event"]["id"] for row in given.to_pylist() if row["kind"] == "late"]
    assert sorted(late_ids) == sorted(row["id"] for row in late)
    if stream.states:  # the pattern has no window, or waits for the end of the input
        assert not stream.timers
    if stream.counts:
        assert stream.counts["late"] == len(late)
        assert stream.counts["matches"] + stream.counts["timeouts"] == not_late.num_rows


def test_idle_keys_leave_no_state() -> None:
    """Without open partial matches and waiting events, a shard has no state and no timer."""
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0, "a"), (1, "p", 1, "b")))
    assert (len(stream.states), len(stream.timers)) == (1, 1)
    stream.batch(pair_events((2, "q", 20, "z")))
    stream.watermark += 1
    stream.batch(PAIR_SCHEMA.empty_table())
    assert (stream.states, stream.timers) == ({}, {})


def test_ids_of_late_events_are_unique() -> None:
    """Equal late events of several micro-batches have different ids, and the same ones if another worker continues."""
    found: dict[bool, list[str]] = {}
    for restarts in (False, True):
        stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
        stream.batch(pair_events((0, "p", 50, "a")))
        found[restarts] = []
        for _ in range(3):
            stream.cache = MatcherCache() if restarts else stream.cache
            found[restarts] += stream.batch(pair_events((1, "p", 1, "b"))).column("match_id").to_pylist()
    assert found[False] == found[True]
    assert len({*found[True]}) == 3


def test_a_deadline_at_the_last_event() -> None:
    """A deadline equal to the time of its key's last event passes when time advances further."""
    pattern = Pattern.begin("a").where("x = 'a'").times_or_more(1).consecutive().followed_by("b").where("x = 'b'")
    options = {"key": "k", "time": "at"}
    stream = Stream(pattern.within_previous("3 seconds"), PAIR_SCHEMA, options, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0.999999, "a"), (1, "p", 3.999999, "a"), (2, "q", 4, "z")))
    assert summaries(stream.batch(pair_events((3, "q", 5, "z")))) == []
    assert summaries(stream.batch(PAIR_SCHEMA.empty_table())) == [("timeout", (0,), 3.999999)]


def test_a_failed_attempt() -> None:
    """A repeated call starts from the stored state, not from the state of the matcher in the worker."""
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0, "a"), (1, "p", 1, "b"), (2, "p", 2, "z")))
    (before,), watermark = stream.states.values(), stream.watermark
    attempt = stream.called(0)
    once, again = (step(stream.matching, attempt._replace(store=replace(before)), [], watermark) for _ in range(2))
    assert once._replace(times={}) == again._replace(times={})
    assert [*once.times] == ["matching_us", "state_us"]
    assert [made.counts["matches"] for made in once.each] == [1]


def test_other_measures() -> None:
    """A restarted query with other measures of the same values works in a worker that has used the former measures."""
    options = {"key": "k", "time": "at", "measures": {"m": "first(b.id)"}}
    before = Stream(PAIR, PAIR_SCHEMA, options, timedelta(0), shards=1)
    before.batch(pair_events((0, "p", 0, "a"), (1, "p", 1, "b"), (2, "p", 5, "z")))
    after = Stream(PAIR, PAIR_SCHEMA, options | {"measures": {"m": "first(b.id) * 10"}}, timedelta(0), shards=1)
    after.states, after.timers, after.watermark, after.cache = (
        before.states,
        before.timers,
        before.watermark,
        before.cache,
    )
    (state,) = after.states.values()
    assert state.stored_head is not None
    assert after.cache.take(("query", 0), unpacked_runner(after.matching.runner)) is None
    assert after.batch(PAIR_SCHEMA.empty_table()).num_rows == 1


def is_b(event: Mapping[str, Any]) -> bool:
    return bool(event["x"] == "b")


FOLLOWED: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id"}


def three_open(limits: Limits, pattern: Pattern = PAIR) -> Stream:
    """A stream whose log has three events that begin a match, after a snapshot with one more."""
    stream = Stream(pattern, PAIR_SCHEMA, FOLLOWED | {"limits": limits}, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0, "a")))
    stream.batch(pair_events((1, "p", 1, "a"), (2, "p", 2, "a"), (3, "p", 3, "a")))
    stream.batch(pair_events((4, "p", 3.5, "z")))
    stream.batch(pair_events((10, "p", 3.6, "z")))
    assert len(stream.states[0].entries) == 3
    return stream


def restarted(stream: Stream, limits: Limits) -> Stream:
    """The query, restarted with these limits."""
    after = Stream(stream.pattern, PAIR_SCHEMA, FOLLOWED | {"limits": limits}, timedelta(0), 1, stream.watermark)
    after.latest, after.states, after.timers = stream.latest, stream.states, stream.timers
    return after


@pytest.mark.parametrize("in_python", [False, True])
def test_the_log_belongs_to_its_limits(in_python: bool) -> None:  # noqa: FBT001
    """Dropped partial matches stay dropped under higher limits, which apply from then on, also after another
    restart.
    """
    by_function = Pattern.begin("a").where("x = 'a'").followed_by("b").where(is_b).within("10 seconds")
    stream = restarted(three_open(Limits(2, on_limit="drop"), by_function if in_python else PAIR), Limits())
    for wanted in (Limits(), Limits(9, on_limit="drop"), Limits(4)):
        assert stream.batch(PAIR_SCHEMA.empty_table()).num_rows == 0
        stream = restarted(stream, wanted)
    stream.batch(pair_events((5, "p", 4, "a"), (6, "p", 5, "b"), (7, "p", 6, "z")))
    assert not stream.states[0].entries  # the log is not continued under other limits
    found = stream.batch(pair_events((8, "p", 7, "z")))
    assert [kinds for kinds, _, _ in summaries(found)] == ["match"] * 3
    assert sorted(ids for _, ids, _ in summaries(found)) == [(2, 6), (3, 6), (5, 6)]


def test_lower_limits() -> None:
    """The events in the log were within its limits; after the restart, exceeding the lower limits is reported."""
    stream = restarted(three_open(Limits(4)), Limits(1))
    stream.batch(pair_events((5, "p", 4, "a")))
    assert not stream.states[0].entries
    stream.batch(pair_events((11, "p", 4.5, "z")))
    with pytest.raises(LimitExceeded, match="more than 1 partial matches are open"):
        stream.batch(pair_events((6, "p", 5, "z")))
    wide = restarted(stream, Limits())
    wide.batch(pair_events((6, "p", 5, "b"), (7, "p", 6, "z")))
    assert wide.batch(pair_events((8, "p", 7, "z"))).num_rows == 5


def test_limits_that_need_another_form() -> None:
    """Where sets are possible, `on_limit` decides the form of the stored state: then a change of it is refused."""
    pattern = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b'").within("10 seconds")
    before, after = (
        Stream(pattern, PAIR_SCHEMA, FOLLOWED | {"limits": limits}, timedelta(0), outputs=("matches",))
        for limits in (Limits(), Limits(on_limit="drop"))
    )
    known = check_ledger(before.matching, None)
    with pytest.raises(SnapshotError) as caught:
        check_ledger(after.matching, known)
    assert str(caught.value).startswith(
        'the checkpoint belongs to another query: partial_matches was "in sets" and is "one by one" (where sets are '
        "possible, Limits.on_limit decides: 'drop' stores partial matches one by one). "
    )


def test_few_matchers_are_cached() -> None:
    """The cache holds at most `most` matchers, those that were stored last."""
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0, "a")))
    (shard,) = stream.states.values()
    assert shard.stored_head is not None
    pattern = unpacked_runner(stream.matching.runner)
    known = stream.cache.take(("query", 0), pattern)
    assert known is not None
    few, one, another = MatcherCache(most=1), ("query", 0), ("query", 1)
    few.put(one, *known)
    few.put(another, *known)
    assert few.take(one, pattern) is None
    assert few.take(another, pattern) == known
    more, third = MatcherCache(most=2), ("query", 2)
    for place in (one, another, one, third):
        more.put(place, *known)
    assert more.take(another, pattern) is None
    assert more.take(one, pattern) == known


def test_workers_that_take_turns() -> None:
    """A worker that gets a shard now and then caches one matcher for it, not the earlier ones."""
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    workers = MatcherCache(), MatcherCache()
    for number in range(10):
        stream.cache = workers[number % 2]
        stream.batch(pair_events((number, "p", number, "a")))
    assert [*map(len, workers)] == [1, 1]


def test_a_worker_continues_from_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has processed the shard before reads the log but no snapshot; after a failed attempt it reads the
    snapshot.
    """
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    workers = MatcherCache(), MatcherCache()
    for number in range(4):
        stream.cache = workers[number % 2]
        if number == 2:
            monkeypatch.setattr(MemoryStore, "snapshot", None)
        found = stream.batch(pair_events((number, "p", number, "ab"[number == 1])))
    assert summaries(found) == [("match", (0, 1), 1.0)]
    monkeypatch.undo()
    failed = stream.called(0)._replace(store=replace(stream.states[0]))
    step(stream.matching, failed, [], stream.watermark)
    monkeypatch.setattr(MemoryStore, "snapshot", lambda _: pytest.fail("the snapshot is read"))
    with pytest.raises(pytest.fail.Exception):
        stream.batch(PAIR_SCHEMA.empty_table())


def test_a_failed_attempt_makes_no_event_late() -> None:
    """Matches of another pattern arrive before time advances. A worker whose attempt failed after advancing time does
    not reuse its matcher for the events that arrive after the repeated attempt.
    """
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    stream.matching = stream.matching._replace(of_matches=True)
    one, another = MatcherCache(), MatcherCache()

    stream.processed_by(one, at(2), pair_events((0, "p", 1, "a")))
    failed = stream.called(0)._replace(store=replace(stream.states[0]))
    step(stream.matching, failed, [], microseconds(at(5)) // 1000)
    stream.processed_by(another, at(5), pair_events((1, "q", 4, "a")))
    (found,) = stream.processed_by(one, at(7), pair_events((2, "q", 6, "b")))
    assert summaries(found) == [("match", (1, 2), 6.0)]


def test_times_before_1970() -> None:
    """Spark's watermark starts at 1970: until it is later than that, no event is late and nothing is certain."""
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    early = pair_events((0, "p", -3e9, "a"), (1, "p", -3e9 + 1, "b"))
    assert stream.batch(early).num_rows == 0
    assert [*stream.timers.values()] == [1]
    stream.batch(pair_events((2, "p", 0, "z")))
    assert stream.batch(PAIR_SCHEMA.empty_table()).column("kind").to_pylist() == ["match"]


def test_a_checkpoint_of_another_query() -> None:
    """The error says what changed and what to do."""
    options = {"key": "k", "time": "at"}
    before = Stream(PAIR, PAIR_SCHEMA, options, timedelta(0), shards=1)
    before.batch(pair_events((0, "p", 0, "a")))
    after = Stream(PAIR.within("5 seconds"), PAIR_SCHEMA, options, timedelta(0), shards=1)
    after.states, after.timers, after.watermark = before.states, before.timers, before.watermark
    advice = (
        "To continue from the checkpoint, call detect with the former arguments; otherwise give the query a new "
        "checkpoint"
    )
    changed = 'pattern.within was "10 seconds" and is "5 seconds"'
    with pytest.raises(SnapshotError) as caught:
        after.batch(pair_events((1, "p", 1, "b")))
    assert str(caught.value) == f"the checkpoint belongs to another query: {changed}. {advice}"
    known = check_ledger(before.matching, None)
    assert check_ledger(before.matching, known) == known
    with pytest.raises(SnapshotError) as caught:
        check_ledger(after.matching, known)
    assert str(caught.value) == f"the checkpoint belongs to another query: {changed}. {advice}"
    with pytest.raises(SnapshotError, match=r"^pattern '.*': the checkpoint belongs to another query: "):
        check_ledger(after.matching._replace(named=True), known)


def test_a_ledger_of_another_version() -> None:
    """Another format and a damaged ledger are reported."""
    matching = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0)).matching
    ledger = json.loads(check_ledger(matching, None))
    assert ledger["format"] == 2
    with pytest.raises(SnapshotError) as caught:
        check_ledger(matching, json.dumps(ledger | {"format": 3}).encode())
    assert str(caught.value) == (
        "the checkpoint has format 3, and this version reads formats up to 2. "
        "Use the version of Cepheid that wrote it, or give the query a new checkpoint"
    )
    for damaged in (b"", b"{}", b"3"):
        with pytest.raises(SnapshotError, match=r"the checkpoint's ledger lacks parts, or has .*\. Restore the"):
            check_ledger(matching, damaged)


def test_a_timer_writes_no_entry() -> None:
    """If only time has advanced, nothing is appended to the log, and the log stays valid."""
    stream = Stream(PAIR.within("2 seconds"), PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0, "a"), (1, "p", 1, "a")))
    stream.batch(pair_events((2, "p", 1, "a")))
    before = replace(stream.states[0])
    assert (before.stored_head is not None, len(before.entries)) == (True, 1)
    stream.watermark += 1500  # after the deadline of the first
    stream.cache = MatcherCache()
    assert summaries(stream.batch(PAIR_SCHEMA.empty_table())) == [("timeout", (0,), 2.0)]
    assert stream.states[0].entries == before.entries
    assert stream.states[0].stored_head != before.stored_head
    stream.cache, stream.watermark = MatcherCache(), stream.watermark + 1000
    assert sorted(summaries(stream.batch(PAIR_SCHEMA.empty_table()))) == [
        ("timeout", (1,), 3.0),
        ("timeout", (2,), 3.0),
    ]


def test_a_damaged_state() -> None:
    """A damaged state is an error that says so."""
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(0), shards=1)
    stream.batch(pair_events((0, "p", 0, "a")))
    stream.batch(pair_events((1, "p", 1, "a")))
    shard, stream.cache = stream.states[0], MatcherCache()
    assert shard.stored_head is not None
    (entry,) = shard.entries
    unfit = "the checkpoint's state does not fit: the "
    for damaged, what in (
        (replace(shard, first=shard.first[:-20] + bytes(20)), f"{unfit}snapshot is damaged"),
        (replace(shard, entries=[entry._replace(events=entry.events[:-20] + bytes(20))]), f"{unfit}log is damaged: a "),
        (
            replace(shard, entries=[entry._replace(passed=entry.passed + 1)]),
            f"{unfit}log is damaged: a digest does not",
        ),
        (replace(shard, entries=[]), f"{unfit}log is damaged: it has 0 entries, and 1 were written. Restore "),
        (replace(shard, entries=[entry, entry]), f"{unfit}log is damaged: it has 2 entries, and 1 were written"),
        (
            replace(shard, stored_head=shard.stored_head._replace(format=3)),
            "the checkpoint has format 3, and this version reads formats up to 2. Use the version of Cepheid",
        ),
    ):
        stream.states[0] = damaged
        with pytest.raises(SnapshotError, match=f"^{what}"):
            stream.batch(pair_events((2, "p", 1, "b")))

"""The state of a stream's shards, changed: a head, a snapshot, an entry of the log, or the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from random import Random

import pyarrow as pa
from tests.fuzz.mutations import mutated_batch, mutated_bytes, mutated_json, mutated_snapshot
from tests.intervals.events import NAMES, Row, interval_pattern, table
from tests.live.events import PAIR, events
from tests.live.events import SCHEMA as PAIR_SCHEMA
from tests.stream.test_open_shards import open_stream
from tests.stream.test_shard import MemoryStore, Stream

from cepheid.hosts.shards.arrow_stream import events_of, to_stream
from cepheid.hosts.shards.log import MatcherCache
from cepheid.hosts.shards.store import Entry
from cepheid.hosts.spark.stream.ledger import from_ledger, ledger_bytes, packed_asked
from cepheid.hosts.spark.stream.shard import Shard, check_ledger, step
from cepheid.matchers.snapshot import from_bytes, to_bytes

_NUMBERS = (0, 1, -1, 2, 1000, 2**31, 2**62, -(2**63), 2**63 - 1)


def _stages() -> tuple[Stream, list[pa.Table]]:
    stream = Stream(PAIR, PAIR_SCHEMA, {"key": "k", "time": "at"}, timedelta(seconds=2), shards=1)
    given = [((0, "p", 0, "a"), (1, "q", 1, "a")), ((2, "p", 2, "b"),), ((3, "q", 4, "z"),), ((4, "q", 6, "b"),)]
    return stream, [*(events(*rows) for rows in given), events((5, "p", 90, "z")), events((6, "p", 91, "z"))]


def _intervals() -> tuple[Stream, list[pa.Table]]:
    text = "EVENT PAL(A a, (!D d gap WHERE d.id > a.id), B b) RELATE a before b WITHIN 20 seconds REALTIME 1"
    options = {"key": "user", "columns": ["id"]} | NAMES
    given: list[Row] = [("A", 0, 2, "1"), ("B", 8, 9, "2"), ("D", 5, 6, "3"), ("A", 9, 10, "4"), ("B", 12, 14, "5")]
    batches = [table([(*row, "u")]) for row in [*given, ("B", 70, 71, "6")]]
    pattern, schema = interval_pattern(text), batches[0].schema
    stream = Stream(pattern, schema, options, timedelta(seconds=5), 1, outputs=("matches", "late"), time="begins")
    return stream, batches


def _open_events() -> tuple[Stream, list[pa.Table]]:
    given: list[list[Row]] = [
        [("A", 0, None, "a", "u"), ("B", 1, None, "b", "u"), ("D", 1, 2, "d", "u")],
        [(None, None, 3, "a", "u"), (None, None, 4, "b", "u")],
        [("C", 6, None, "c", "u")],
        [(None, None, 8, "c", "u")],
        [("Z", 60, 60, "z", "u")],
    ]
    return open_stream("earliest"), [*map(table, given)]


KINDS: dict[str, Callable[[], tuple[Stream, list[pa.Table]]]] = {
    "stages": _stages,
    "intervals": _intervals,
    "open events": _open_events,
}
_BEFORE = 3
"""So many micro-batches are processed before the state is changed."""


@cache
def stream_with_state(kind: str) -> tuple[Stream, list[pa.Table]]:
    """A stream of this kind in the middle, and the micro-batches that are left."""
    stream, batches = KINDS[kind]()
    for batch in batches[:_BEFORE]:
        stream.batch(batch)
    assert any(state.entries for state in stream.states.values())
    return stream, batches[_BEFORE:]


def prepare_streams() -> None:
    """Makes what is mutated."""
    for kind in KINDS:
        stream_with_state(kind)


def try_checkpoint(source: Random) -> None:
    """A stream with a changed state goes on, or its query fails with what is wrong."""
    whole, batches = stream_with_state(source.choice([*KINDS]))
    shard, state = next(iter(whole.states.items()))
    watermark = whole.watermark
    if source.randrange(6) == 0:
        check_ledger(whole.matching, _changed_ledger(source, check_ledger(whole.matching, None)))
        return
    called = Shard(_changed(source, state), MatcherCache(), ("query", shard))
    for batch in batches:
        step(whole.matching, called, list(whole.values(batch).values()), watermark)
        watermark += 30_000
    step(whole.matching, called, [], watermark)


def _changed(source: Random, state: MemoryStore) -> MemoryStore:
    head = state.stored_head
    assert head is not None
    part = source.randrange(4)
    if part == 0:
        name = source.choice(["format", "entries", "log_bytes", "room", "passed", "open", "timer"])
        return replace(state, stored_head=head._replace(**{name: source.choice(_NUMBERS)}))
    if part == 1 and state.entries:
        return replace(state, entries=_changed_log(source, state.entries))
    if source.randrange(6) == 0:
        return replace(state, first=mutated_bytes(source, state.first))
    return replace(state, first=to_bytes(mutated_snapshot(source, from_bytes(state.first))))


def _changed_log(source: Random, entries: list[Entry]) -> list[Entry]:
    at = source.randrange(len(entries))
    entry = entries[at]
    match source.randrange(4):
        case 0:
            changed = [entry._replace(events=mutated_bytes(source, entry.events))]
        case 1:
            changed = []
        case 2:
            changed = [Entry.of(entry.reached._replace(time=source.choice(_NUMBERS)), entry.events)]
        case _:
            rows = events_of([entry.events])  # other bytes under a new digest would be read without a check
            assert rows is not None
            changed = [Entry.of(entry.reached, to_stream(mutated_batch(source, rows.data)))]
    return [*entries[:at], *changed, *entries[at + 1 :]]


def _changed_ledger(source: Random, ledger: bytes) -> bytes:
    if source.randrange(3) == 0:
        return mutated_bytes(source, ledger)
    made_for, asked = from_ledger(ledger)
    return ledger_bytes(mutated_json(source, made_for), packed_asked(asked))

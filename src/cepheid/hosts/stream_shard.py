"""One call of a shard of a stream: the state it had, the events that came and the watermark → rows and the next state.

All keys of a shard are in one matcher, and its state is one value, a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

import pyarrow as pa

from cepheid.detector import load_kernel
from cepheid.errors import SnapshotError
from cepheid.hosts.request import STREAM_COUNTS
from cepheid.hosts.stream_packing import events_of, to_stream
from cepheid.hosts.worker import compiled, output_schema
from cepheid.kernel.layout import FOREVER
from cepheid.live_matcher import LiveMatcher
from cepheid.output import row_schema
from cepheid.snapshot import differences, fitting

_ANEW = "To go on with the checkpoint, detect as it was made; else give the query a checkpoint of its own"


class Matching(NamedTuple):
    """What a shard is to do."""

    plan: bytes
    """A pickled Plan."""
    columns: pa.Schema
    """Of the events, as the matcher takes them."""
    made_for: str
    """What the checkpoint must be of: JSON."""


class Stepped(NamedTuple):
    """What a call of a shard gave."""

    rows: bytes | None
    state: bytes | None
    """None: nothing is open and nothing waits."""
    timer: int | None
    """Milliseconds: the watermark at which there is something to do."""
    former_timer: int | None
    """That of the state before."""
    counts: dict[str, int]


def step(matching: Matching, state: bytes | None, values: Sequence[bytes], watermark: int) -> Stepped:
    """Time passes to the watermark (milliseconds), then the events come; those with a time before it are late.

    The order matters: were the events taken first, whether one is late would depend on when its shard was last called.

    Raises:
        ConditionError, LimitExceeded, SkipError: as `detect`.
        SnapshotError: the state is damaged, or of another query.
    """
    pattern = compiled(matching.plan)
    if state is None:
        load_kernel(pattern)
        matcher, former_timer = LiveMatcher(pattern), None
    else:
        matcher, former_timer = _restored(matching, state)
    before = _counts(matcher)
    rows = []
    if watermark > 0:  # Spark's first watermark is 1970, whatever the events' times are
        rows.append(matcher.advance_time(watermark * 1000 - 1))
    if (events := events_of(values)) is not None:
        rows.append(matcher.process(events))
    due = matcher.due
    timer = None if due == FOREVER else max(1, due // 1000 + 1)
    is_empty = not matcher.open_partial_matches and not len(matcher.waiting)
    counts = {name: count - before[name] for name, count in _counts(matcher).items()}
    return Stepped(
        rows=_as_value(rows, output_schema(row_schema(pattern.plan))),
        state=None if is_empty else matcher.snapshot(json.loads(matching.made_for), {"timer": timer}),
        timer=timer,
        former_timer=former_timer,
        counts=counts,
    )


def check_ledger(made_for: str, known: bytes | None) -> bytes:
    """What the ledger is to keep.

    Raises:
        SnapshotError: the checkpoint is of another query.
    """
    if known is not None and (changed := differences(json.loads(known), json.loads(made_for))):
        raise SnapshotError(f"the checkpoint is of another query: {'; '.join(changed)}. {_ANEW}")
    return made_for.encode()


def _restored(matching: Matching, state: bytes) -> tuple[LiveMatcher, int | None]:
    """The matcher, and the timer that is set for it."""
    try:
        matcher, kept = LiveMatcher.restored(
            compiled(matching.plan), state, json.loads(matching.made_for), matching.columns
        )
        with fitting():
            return matcher, kept["timer"]
    except SnapshotError as error:
        raise SnapshotError(f"the checkpoint's state does not fit: {error}. {_ANEW}") from error


def _counts(matcher: LiveMatcher) -> dict[str, int]:
    found = {"ties": matcher.ties, "late": matcher.late, **asdict(matcher.detector.found)}
    return {name: found[name] for name in STREAM_COUNTS}


def _as_value(tables: Sequence[pa.Table], schema: pa.Schema) -> bytes | None:
    tables = [table for table in tables if table.num_rows]
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    nothing = [pa.nulls(rows.num_rows, field.type) for field in schema if field.name not in rows.schema.names]
    return to_stream(pa.Table.from_arrays([*nothing, *rows.columns], schema=schema))

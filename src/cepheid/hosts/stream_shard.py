"""One call of a shard of a stream: the state it had, the events that came and the watermark → rows and the next state.

All keys of a shard are in one matcher, and its state is one value, a snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.hosts.request import STREAM_COUNTS
from cepheid.hosts.stream_packing import events_of, to_stream
from cepheid.hosts.worker import compiled, output_schema
from cepheid.kernel.layout import FOREVER
from cepheid.live_matcher import LiveMatcher
from cepheid.output import row_schema
from cepheid.snapshot import differences, digest_of

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


class Live:
    """Matchers of earlier calls in this process, each by the state that it wrote.

    A shard that is called again where it was called before need not be restored, which costs half of a small call. The
    state alone decides: one that another worker has written since, or a failed attempt's, is another.
    """

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._matchers: dict[tuple[bytes, bytes], LiveMatcher] = {}

    def take(self, matching: Matching, state: bytes) -> LiveMatcher | None:
        """The matcher that wrote the state; it then belongs to the caller."""
        return self._matchers.pop((matching.plan, digest_of(state)), None)

    def keep(self, matching: Matching, state: bytes, matcher: LiveMatcher) -> None:
        """In place of the one that was kept longest, if there are too many."""
        self._matchers[matching.plan, digest_of(state)] = matcher
        if len(self._matchers) > self._most:
            del self._matchers[next(iter(self._matchers))]


LIVE = Live()
"""Those of this worker."""


def step(matching: Matching, state: bytes | None, values: Sequence[bytes], watermark: int, live: Live) -> Stepped:
    """Time passes to the watermark (milliseconds), then the events come; those with a time before it are late.

    The order matters: were the events taken first, whether one is late would depend on when its shard was last called.

    Raises:
        ConditionError, LimitExceeded, SkipError: as `detect`.
        SnapshotError: the state is damaged, or of another query.
    """
    pattern = compiled(matching.plan)
    matcher = LiveMatcher(pattern) if state is None else live.take(matching, state) or _restored(matching, state)
    former_timer = None if state is None else _timer(matcher)
    before = _counts(matcher)
    rows = []
    if watermark > 0:  # Spark's first watermark is 1970, whatever the events' times are
        rows.append(matcher.advance_time(watermark * 1000 - 1))
    if (events := events_of(values)) is not None:
        rows.append(matcher.process(events))
    next_state = None
    if matcher.open_partial_matches or len(matcher.waiting):
        next_state = matcher.snapshot(json.loads(matching.made_for), {})
        live.keep(matching, next_state, matcher)
    counts = {name: count - before[name] for name, count in _counts(matcher).items()}
    return Stepped(
        rows=_as_value(rows, output_schema(row_schema(pattern.plan))),
        state=next_state,
        timer=_timer(matcher),
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


def _restored(matching: Matching, state: bytes) -> LiveMatcher:
    pattern, made_for = compiled(matching.plan), json.loads(matching.made_for)
    try:
        return LiveMatcher.restored(pattern, state, made_for, matching.columns)[0]
    except SnapshotError as error:
        raise SnapshotError(f"the checkpoint's state does not fit: {error}. {_ANEW}") from error


def _timer(matcher: LiveMatcher) -> int | None:
    """The watermark that is behind what is due next; Spark's first one, 1970, is behind nothing."""
    return None if matcher.due == FOREVER else max(1, matcher.due // 1000 + 1)


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

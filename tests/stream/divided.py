"""The matchers of a stream's shards, whose state is divided by key, and joined again in another way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Any

import pyarrow as pa
from tests.stream.test_shard import Stream

from cepheid.events.batch import Batch
from cepheid.events.identity import key_names
from cepheid.hosts.shards.arrow_stream import events_of, to_stream
from cepheid.matchers.protocols import LiveMatcher


class Shards:
    """Some matchers of a stream's pattern; at first there is one."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.shards: list[LiveMatcher] = [stream.runner.matcher()]
        self.rows: defaultdict[str | None, list[dict[str, Any]]] = defaultdict(list)
        """The rows of each key, in the order in which they came."""
        self.counts = Counter[str]()

    def shard(self, key: str) -> int:
        return sum(map(ord, key)) % len(self.shards)

    def feed(self, events: pa.Table, now: int) -> None:
        """Processes the events, then advances time to `now`, in microseconds."""
        keys = events.column(self.stream.options["key"]).to_pylist()
        for number, matcher in enumerate(self.shards):
            before = matcher.counts
            mine = events.filter(pa.array([self.shard(key) == number for key in keys], pa.bool_()))
            found = [matcher.process(self._lifted(mine))] if len(mine) else []
            self._take(pa.concat_tables([*found, matcher.advance_time(now)]))
            self.counts.update({name: count - before[name] for name, count in matcher.counts.items()})

    @property
    def open(self) -> int:
        return sum(matcher.open for matcher in self.shards)

    def divide(self, shards: int, keys: Collection[str]) -> None:
        """Divides all that the matchers have into so many shards; `keys` are all keys."""
        pieces: list[list[bytes]] = [[] for _ in range(shards)]
        former, self.shards = self.shards, [self.stream.runner.matcher() for _ in range(shards)]
        for matcher in former:
            whole = matcher.snapshot({}, {})
            for number, piece in enumerate(pieces):
                part = self.restored(whole)
                part.keep_only({_name(key) for key in keys if self.shard(key) == number})
                piece.append(part.snapshot({}, {}))
        self.shards = [self.restored(self.stream.runner.joined(piece)) for piece in pieces]

    def restored(self, snapshot: bytes) -> LiveMatcher:
        """A matcher that continues from the snapshot."""
        matcher, _ = self.stream.runner.restored(snapshot, {}, self.stream.matching.columns)
        return matcher  # type: ignore[no-any-return]

    def _lifted(self, rows: pa.Table) -> Batch:
        batch = events_of([to_stream(self.stream._lifted(rows))])  # noqa: SLF001
        assert batch is not None
        return batch

    def _take(self, rows: pa.Table) -> None:
        for row in rows.select([name for name in rows.schema.names if not name.startswith("_")]).to_pylist():
            self.rows[row[self.stream.options["key"]]].append(row)


def _name(key: str) -> bytes:
    return key_names([pa.array([key])], 1)[0]

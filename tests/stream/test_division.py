"""Matchers whose state is divided by key, and joined again in another way, go on as if nothing had happened."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.events import events
from tests.stream.test_shard import Stream

from cepheid import Pattern, SnapshotError
from cepheid.events.batch import Batch
from cepheid.hosts.shards.arrow_stream import events_of, to_stream
from cepheid.hosts.spark.stream.packing import unpacked_runner
from cepheid.matchers.runners import OrderedLiveMatcher
from cepheid.matchers.snapshot import from_bytes, to_bytes


def is_b(event: Any) -> bool:
    return bool(event["x"] == "b")


A, B = "x = 'a'", "x = 'b'"
PATTERNS = {
    "sets": Pattern.begin("a")
    .where(A)
    .followed_by_any("b")
    .where(B)
    .followed_by_any("c")
    .where("x = 'c'")
    .within("9 seconds"),
    "one by one": Pattern.begin("a").where(A).followed_by("b").where(f"{B} AND id > a.id + 1").within("9 seconds"),
    "loops": Pattern.begin("a").where(A).followed_by("b").where(B).one_or_more().greedy().within("9 seconds"),
    "longest": Pattern.begin("a").where(A).next("b").where(B).one_or_more().consecutive().longest().within("9 seconds"),
    "in python": Pattern.begin("a").where(A).followed_by("b").where(is_b).within("9 seconds"),
}
"""Each has another representation of what is open, or other parts of it."""


def options(pattern: Pattern) -> dict[str, Any]:
    return {"pattern": pattern, "columns": events().schema, "options": {"key": "k", "time": "at", "sequence": "id"}}


class Shards:
    """The matchers of shards, by the names of their keys."""

    def __init__(self, pattern: Pattern) -> None:
        self.stream = Stream(**options(pattern), lateness=timedelta(0))
        self.runner: Any = unpacked_runner(self.stream.matching.runner)
        self.shards: list[OrderedLiveMatcher] = [self.runner.matcher()]
        self.rows: list[dict[str, Any]] = []

    def shard(self, key: str) -> int:
        return sum(map(ord, key)) % len(self.shards)

    def feed(self, rows: pa.Table, second: int) -> None:
        """Processes the events, then advances time."""
        for number, matcher in enumerate(self.shards):
            is_mine = [self.shard(key) == number for key in rows.column("k").to_pylist()]
            mine = rows.filter(pa.array(is_mine, pa.bool_()))
            if mine.num_rows:
                self.rows += self._given(matcher.process(self._lifted(mine)))
            self.rows += self._given(matcher.advance_time((1_704_067_200 + second) * 1_000_000))

    def divide(self, shards: int, keys: list[str]) -> None:
        """Divides all that is open into so many shards."""
        pieces: list[list[bytes]] = [[] for _ in range(shards)]
        names = {key: self._name(key) for key in keys}
        former, self.shards = self.shards, [self.runner.matcher() for _ in range(shards)]
        for matcher in former:
            whole = matcher.snapshot({}, {})
            for number, piece in enumerate(pieces):
                part = self._restored(whole)
                part.keep_only({names[key] for key in keys if self.shard(key) == number})
                piece.append(part.snapshot({}, {}))
        self.shards = [self._restored(self.runner.joined(piece)) for piece in pieces]

    def _restored(self, snapshot: bytes) -> OrderedLiveMatcher:
        matcher, _ = self.runner.restored(snapshot, {}, self.stream.matching.columns)
        assert isinstance(matcher, OrderedLiveMatcher)
        return matcher

    def _lifted(self, rows: pa.Table) -> Batch:
        batch = events_of([to_stream(self.stream._lifted(rows))])  # noqa: SLF001
        assert batch is not None
        return batch

    def _name(self, key: str) -> bytes:
        from cepheid.events.identity import key_names

        return key_names([pa.array([key])], 1)[0]

    def _given(self, rows: pa.Table) -> list[dict[str, Any]]:
        return rows.select([name for name in rows.schema.names if not name.startswith("_")]).to_pylist()


KEYS = list("pqrstu")
BATCH = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 6), st.sampled_from("abc")), max_size=12)


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=15)
@given(batches=st.lists(BATCH, min_size=2, max_size=5), shards=st.lists(st.integers(1, 5), min_size=4, max_size=4))
def test_divided_matchers_go_on(name: str, batches: list[list[tuple[str, int, str]]], shards: list[int]) -> None:
    """Whatever the numbers of shards before and after, the same rows come, with the same ids, late ones among them."""
    undivided, divided = Shards(PATTERNS[name]), Shards(PATTERNS[name])
    number = 0
    for step, batch in enumerate(batches):
        rows = events(*((number := number + 1, key, 3 * step + second, x) for key, second, x in batch))
        for matchers in (undivided, divided):
            matchers.feed(rows, 3 * step)
        divided.divide(shards[step % len(shards)], KEYS)
    for matchers in (undivided, divided):
        matchers.feed(events(), 100)
    assert sorted(map(repr, divided.rows)) == sorted(map(repr, undivided.rows))


def test_shards_of_different_versions() -> None:
    """Shards that make ids in different ways are not joined."""
    former, new = Shards(PATTERNS["sets"]), Shards(PATTERNS["sets"])
    parts = [from_bytes(one.shards[0].snapshot({}, {})) for one in (former, new)]
    parts[0].header["ids"] = 1
    with pytest.raises(SnapshotError, match=r"^its shards make ids in different ways, as they began with different"):
        new.runner.joined([to_bytes(part) for part in parts])

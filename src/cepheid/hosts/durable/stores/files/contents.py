"""What a file store has now: small values in memory, and where the large ones are on the disk."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.hosts.durable.stores.files.records import Blob, Change
from cepheid.hosts.durable.stores.layout import INPUTS, PATTERNS
from cepheid.hosts.shards.store import Entry, Head

JsonValue = dict[str, Any]

SHARD_KINDS = {"snapshot", "entry", "head", "clear"}
"""The kinds of changes of the state of a deployment's matcher."""


class StoredEntry(NamedTuple):
    """An entry of a shard's log; its events are in a file."""

    passed: int
    events: Blob
    digest: bytes
    over: bool

    def read(self) -> Entry:
        return Entry(self.passed, self.events.read(), self.digest, self.over)


class ShardContents(NamedTuple):
    """The state of a deployment's matcher."""

    head: Head
    snapshot: Blob
    log: list[StoredEntry]


class KeptFeed(NamedTuple):
    number: int
    latest: int
    events: Blob


class RowFile(NamedTuple):
    """A file with older rows of a table."""

    name: str
    rows: int
    size: int
    digest: str
    columns: list[str]


@dataclass
class Contents:
    """All of it. `apply` takes it from one record to the next; `changes` is a snapshot of it."""

    inputs: dict[str, JsonValue] = field(default_factory=dict)
    deployments: dict[int, JsonValue] = field(default_factory=dict)
    shards: dict[int, ShardContents] = field(default_factory=dict)
    kept: dict[str, list[KeptFeed]] = field(default_factory=dict)
    tables: dict[str, pa.Schema] = field(default_factory=dict)
    """The columns of the tables of rows for users."""
    files: dict[str, list[RowFile]] = field(default_factory=dict)
    """The older rows of tables, and of the outbox."""
    sent: int = 0
    """The number of the last row in the outbox."""
    tail: list[Change] = field(default_factory=list)
    """The rows since the snapshot: changes that are in no file of rows yet."""
    changed: set[str] = field(default_factory=set)
    """Which of the tables of inputs and of patterns have changed; whoever lists them clears it."""

    def apply(self, change: Change) -> None:
        kind, value, content = change
        match kind:
            case "input":
                self.inputs[value["name"]] = value
                self.changed.add(INPUTS)
            case "deployment":
                self.deployments[value["number"]] = value
                self.changed.add(PATTERNS)
            case _ if kind in SHARD_KINDS:
                self._apply_to_shard(change)
            case "keep":
                assert isinstance(content, Blob)
                feed = KeptFeed(value["number"], value["latest"], content)
                self.kept.setdefault(value["input"], []).append(feed)
            case "forget":
                feeds = self.kept.get(value["input"], [])
                self.kept[value["input"]] = [feed for feed in feeds if feed.latest >= value["until"]]
            case "table":
                self.tables[value["name"]] = _schema_of(value["columns"])
            case "files":
                self.files[value["table"]] = [RowFile(*one) for one in value["files"]]
            case "sent":
                self.sent = value["number"]
            case _:
                assert kind in {"rows", "gone", "outbox"}, kind
                self.tail.append(change)

    def versions(self, table: str) -> int:
        """How many versions of a pattern have rows in the table."""
        slug = table.partition("_")[2]
        return sum(one["slug"] == slug for one in self.deployments.values())

    def _apply_to_shard(self, change: Change) -> None:
        kind, value, content = change
        deployment = value["deployment"]
        if kind == "clear":
            self.shards.pop(deployment, None)
            return
        head = head_of(value["head"])
        if kind == "snapshot":
            assert isinstance(content, Blob)
            self.shards[deployment] = ShardContents(head, content, [])
            return
        before = self.shards[deployment]
        if kind == "entry":
            assert isinstance(content, Blob)
            digest = bytes.fromhex(value["digest"])
            before.log.append(StoredEntry(value["passed"], content, digest, value["over"]))
        self.shards[deployment] = before._replace(head=head)

    def changes(self) -> Iterator[Change]:
        """The changes that make an empty store this one, without the rows in `tail`."""
        yield from (Change("input", value) for value in self.inputs.values())
        yield from (Change("deployment", value) for value in self.deployments.values())
        yield from (Change("table", table_to_json(name, columns)) for name, columns in self.tables.items())
        for deployment, shard in self.shards.items():
            yield snapshot_change(deployment, shard.head, shard.snapshot)
            yield from (entry_change(deployment, shard.head, entry) for entry in shard.log)
        for source, feeds in self.kept.items():
            yield from (keep_change(source, *feed) for feed in feeds)
        yield from (Change("files", {"table": name, "files": files}) for name, files in self.files.items())
        yield Change("sent", {"number": self.sent})


def snapshot_change(deployment: int, head: Head, snapshot: bytes | Blob) -> Change:
    return Change("snapshot", {"deployment": deployment, "head": head_to_json(head)}, snapshot)


def entry_change(deployment: int, head: Head, entry: Entry | StoredEntry) -> Change:
    about = {"passed": entry.passed, "over": entry.over, "digest": entry.digest.hex()}
    return Change("entry", {"deployment": deployment, "head": head_to_json(head), **about}, entry.events)


def keep_change(source: str, number: int, latest: int, events: bytes | Blob) -> Change:
    return Change("keep", {"input": source, "number": number, "latest": latest}, events)


def head_to_json(head: Head) -> list[Any]:
    return [head.format, head.state.hex(), *head[2:]]


def head_of(value: list[Any]) -> Head:
    return Head(value[0], bytes.fromhex(value[1]), *value[2:])


def table_to_json(name: str, columns: pa.Schema) -> JsonValue:
    return {"name": name, "columns": b64encode(columns.serialize().to_pybytes()).decode()}


def _schema_of(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(b64decode(text)))

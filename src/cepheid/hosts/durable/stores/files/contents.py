"""What a file store has now: small values in memory, and where the large ones are on the disk."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.hosts.durable.stores.files.records import Blob, Change
from cepheid.hosts.shards.store import Entry, Head

JsonValue = dict[str, Any]

SHARD_KINDS = {"part", "place", "entry", "head", "clear"}
"""The kinds of changes of the state of a deployment's matcher."""
HEAD_KINDS = SHARD_KINDS - {"part"}
"""Those that change its head."""


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
    parts: tuple[Blob, ...]
    """The parts of the snapshot."""
    log: list[StoredEntry]


class StoredTable(NamedTuple):
    """A table of rows for users."""

    columns: pa.Schema
    id: str | None
    """The column with the ids of rows, if it has one."""


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
    """Everything that is stored. `apply` makes one change to it; `changes` lists those that a snapshot consists of."""

    inputs: dict[str, JsonValue] = field(default_factory=dict)
    deployments: dict[int, JsonValue] = field(default_factory=dict)
    shards: dict[int, ShardContents] = field(default_factory=dict)
    parts: dict[int, list[Blob]] = field(default_factory=dict)
    """The parts of the next snapshot of a deployment's matcher."""
    kept: dict[str, list[KeptFeed]] = field(default_factory=dict)
    tables: dict[str, StoredTable] = field(default_factory=dict)
    files: dict[str, list[RowFile]] = field(default_factory=dict)
    """The older rows of tables, and of the outbox."""
    sent: int = 0
    """The number of the last row in the outbox."""
    tail: list[Change] = field(default_factory=list)
    """The changes of rows since the snapshot: they are in no file of rows yet."""
    changed_inputs: set[str] = field(default_factory=set)
    """The names of inputs that have changed since the tables for users were brought to them, which clears it."""
    changed_deployments: set[int] = field(default_factory=set)
    """The same for the numbers of deployments."""

    def apply(self, change: Change) -> None:
        kind, value, content = change
        match kind:
            case "input":
                self.inputs[value["name"]] = value
                self.changed_inputs.add(value["name"])
            case "deployment":
                self.deployments[value["number"]] = value
                self.changed_deployments.add(value["number"])
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
                self.tables[value["name"]] = StoredTable(_schema_of(value["columns"]), value["id"])
            case "files":
                self.files[value["table"]] = [RowFile(*one) for one in value["files"]]
            case "sent":
                self.sent = value["number"]
            case _:
                assert kind in {"rows", "gone", "older", "latest", "outbox", "forget_sent"}, kind
                self.tail.append(change)

    def has_new_ids(self, table: str) -> bool:
        """Whether no id of a row in the table comes twice: only another version of a pattern finds a match again."""
        kind, _, slug = table.partition("_")
        return (
            kind in {"matches", "timeouts", "late"}
            and sum(one["slug"] == slug for one in self.deployments.values()) == 1
        )

    def _apply_to_shard(self, change: Change) -> None:
        kind, value, content = change
        deployment = value["deployment"]
        if kind == "clear":
            self.shards.pop(deployment, None)
            self.parts.pop(deployment, None)
            return
        if kind == "part":
            assert isinstance(content, Blob)
            if value["number"] == 0:
                self.parts[deployment] = []
            self.parts[deployment].append(content)
            return
        head, before = head_of(value["head"]), self.shards.get(deployment)
        if kind == "place":
            since = value["since"]
            log = [] if before is None or since is None else before.log[since:]
            self.shards[deployment] = ShardContents(head, tuple(self.parts.pop(deployment)), log)
            return
        assert before is not None
        if kind == "entry":
            assert isinstance(content, Blob)
            digest = bytes.fromhex(value["digest"])
            before.log.append(StoredEntry(value["passed"], content, digest, value["over"]))
        self.shards[deployment] = before._replace(head=head)

    def changes(self) -> Iterator[Change]:
        """The changes that make an empty store this one, without the rows in `tail`."""
        yield from (Change("input", value) for value in self.inputs.values())
        yield from (Change("deployment", value) for value in self.deployments.values())
        yield from (Change("table", table_to_json(name, *table)) for name, table in self.tables.items())
        for deployment, shard in self.shards.items():
            yield from (part_change(deployment, number, part) for number, part in enumerate(shard.parts))
            yield place_change(deployment, shard.head, None)
            yield from (entry_change(deployment, shard.head, entry) for entry in shard.log)
        for deployment, parts in self.parts.items():
            yield from (part_change(deployment, number, part) for number, part in enumerate(parts))
        for source, feeds in self.kept.items():
            yield from (keep_change(source, *feed) for feed in feeds)
        yield from (Change("files", {"table": name, "files": files}) for name, files in self.files.items())
        yield Change("sent", {"number": self.sent})


def part_change(deployment: int, number: int, content: bytes | Blob) -> Change:
    """A part of the next snapshot; number 0 begins it anew."""
    return Change("part", {"deployment": deployment, "number": number}, content)


def place_change(deployment: int, head: Head, since: int | None) -> Change:
    """The parts become the snapshot, in place of the first `since` entries of the log; None: of all."""
    return Change("place", {"deployment": deployment, "head": head_to_json(head), "since": since})


def entry_change(deployment: int, head: Head, entry: Entry | StoredEntry) -> Change:
    about = {"passed": entry.passed, "over": entry.over, "digest": entry.digest.hex()}
    return Change("entry", {"deployment": deployment, "head": head_to_json(head), **about}, entry.events)


def keep_change(source: str, number: int, latest: int, events: bytes | Blob) -> Change:
    return Change("keep", {"input": source, "number": number, "latest": latest}, events)


def head_to_json(head: Head) -> list[Any]:
    """All but `open_of_each`: a deployment has one pattern."""
    return [head.format, head.state.hex(), *head[2:-1]]


def head_of(value: list[Any]) -> Head:
    return Head(value[0], bytes.fromhex(value[1]), *value[2:])


def table_to_json(name: str, columns: pa.Schema, id_: str | None) -> JsonValue:
    return {"name": name, "id": id_, "columns": b64encode(columns.serialize().to_pybytes()).decode()}


def numbers_to_json(numbers: Sequence[int]) -> JsonValue:
    """Numbers of the outbox, ascending: the first one, or all of them if numbers between them are missing."""
    has_all = numbers[-1] - numbers[0] == len(numbers) - 1
    return {"first": numbers[0]} if has_all else {"numbers": [*numbers]}


def numbers_from_json(value: JsonValue, count: int) -> Sequence[int]:
    """The numbers of `count` rows, as `numbers_to_json` has written them."""
    return value["numbers"] if "numbers" in value else range(value["first"], value["first"] + count)


def _schema_of(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(b64decode(text)))

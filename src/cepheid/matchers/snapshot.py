"""A matcher's state as bytes: a JSON header, arrays in NumPy's format and events in Arrow's, each compressed, and a
digest.

A snapshot contains no code. Its content is used only after the digest, the format and the pattern have been compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import blake2b
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import SnapshotError
from cepheid.events.batch import EVENT_ID, MASK, TIME
from cepheid.lang.duration import format_duration

if TYPE_CHECKING:
    from cepheid.output.ids import Ids

MAGIC = b"CEPHEID\n"
FORMAT = 3
"""Increased when older versions can no longer read what is written. All earlier formats can be read; 1 is uncompressed,
and 2 has no `ids`.
"""
SHARED_FORMAT = 4
"""That of snapshots of several matchers which share events: older versions would take them to hold none."""

_CODEC = pa.Codec("zstd", compression_level=1)
_DIGEST = 16
_CHUNK = 1 << 23
"""The most bytes that are compressed at once."""
_PIECE = 1 << 20
"""The most bytes of a piece."""
_BEYOND_64_BITS = 2**63
_START_ANEW = "Start without it, or restore one that the same kind of matcher has written"


class AnotherMatcher(SnapshotError):
    """The snapshot was made for another matcher."""

    def __init__(self, changed: Sequence[str]) -> None:
        super().__init__(f"the snapshot was made for another matcher: {'; '.join(changed)}")
        self.changed = changed
        """The differences, as text."""


class Snapshot(NamedTuple):
    """The stored state of a matcher."""

    header: dict[str, Any]
    """Values that JSON can hold."""
    arrays: Mapping[str, npt.NDArray[Any]]
    batches: Mapping[str, pa.RecordBatch]


def to_bytes(snapshot: Snapshot) -> bytes:
    return b"".join(in_pieces(snapshot))


def in_pieces(snapshot: Snapshot) -> Iterator[bytes]:
    """The bytes of the snapshot, in pieces that take some ten milliseconds each. The first ones are empty: the header
    says how long the compressed parts are, so these come first.
    """
    listed, packed = list[tuple[str, str, int, int]](), list[bytes]()
    for name, kind, data in _serialized(snapshot):
        before = sum(map(len, packed))
        for start in range(0, max(1, len(data)), _CHUNK):
            # A chunk is a frame of zstd; frames one after the other are read as one.
            packed.append(_CODEC.compress(data[start : start + _CHUNK], asbytes=True))
            if start + _CHUNK < len(data):
                yield b""
        listed.append((name, kind, len(data), sum(map(len, packed)) - before))
    header = json.dumps({"format": FORMAT, "parts": listed, **snapshot.header}).encode()
    body = memoryview(b"".join([MAGIC, len(header).to_bytes(8, "little"), header, *packed]))
    for start in range(0, len(body), _PIECE):
        yield bytes(body[start : start + _PIECE])
    yield blake2b(body, digest_size=_DIGEST).digest()


def _serialized(snapshot: Snapshot) -> Iterator[tuple[str, str, bytes]]:
    for name, array in snapshot.arrays.items():
        yield name, "array", _array_bytes(array)
    for name, batch in snapshot.batches.items():
        yield name, "batch", _batch_bytes(batch)


def from_bytes(data: bytes) -> Snapshot:
    """
    Raises:
        SnapshotError: the bytes are no snapshot, are damaged, or have an unknown format.
    """
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if not body.startswith(MAGIC):
        raise SnapshotError(f"these {len(data)} bytes are not a snapshot of a matcher")
    if blake2b(body, digest_size=_DIGEST).digest() != digest:
        raise SnapshotError(f"the snapshot is damaged: its digest does not agree with its {len(data)} bytes")
    start = len(MAGIC) + 8
    stop = start + int.from_bytes(body[len(MAGIC) : start], "little")
    with fitting():
        header = json.loads(body[start:stop])
        if (written := header.pop("format")) not in range(1, SHARED_FORMAT + 1):
            known = f"this version reads formats up to {SHARED_FORMAT}"
            raise SnapshotError(f"the snapshot has format {written}, and {known}")
        found = dict(_parts(body, stop, header.pop("parts")))
    arrays = {name: part for name, part in found.items() if isinstance(part, np.ndarray)}
    batches = {name: part for name, part in found.items() if isinstance(part, pa.RecordBatch)}
    return Snapshot(header, arrays, batches)


def opened(data: bytes, made_for: Mapping[str, Any]) -> Snapshot:
    """Reads a snapshot and checks that it was made for `made_for`.

    Raises:
        SnapshotError: as `from_bytes`.
        AnotherMatcher: the snapshot was made for something else.
    """
    snapshot = from_bytes(data)
    if changed := differences(snapshot.header.get("made_for"), made_for):
        raise AnotherMatcher(changed)
    return snapshot


def ids_of(header: Mapping[str, Any]) -> Ids:
    """How the matcher makes ids that wrote the snapshot, and each that continues from it. Those before format 3 do not
    say: they all used BLAKE2b.

    Raises:
        SnapshotError: a newer version wrote it.
    """
    from cepheid.output.ids import Ids

    written = header.get("ids", Ids.BLAKE2B.value)
    if type(written) is not int or written not in [*Ids]:
        known = " and ".join(str(ids.value) for ids in Ids)
        what = f"the snapshot has ids {json.dumps(written)}, and this version makes ids {known}"
        raise SnapshotError(f"{what}: a newer version of Cepheid wrote it")
    return Ids(written)


class Apart(NamedTuple):
    """What is in a snapshot of several matchers."""

    each: list[bytes]
    """Their own snapshots."""
    shared: pa.RecordBatch | None
    """The events that they share; None: each has its own, as in a snapshot of an older version."""


def together(each: Mapping[str, bytes], shared: pa.RecordBatch | None) -> bytes:
    """One snapshot with the snapshots of several matchers, by their patterns' names, and the events that they share."""
    arrays = {str(number): np.frombuffer(one, np.uint8) for number, one in enumerate(each.values())}
    header: dict[str, Any] = {"made_for": {_SEVERAL: [*each]}}
    if shared is None:
        return to_bytes(Snapshot(header, arrays, {}))
    return to_bytes(Snapshot({**header, "format": SHARED_FORMAT}, arrays, {_SHARED: shared}))


def apart(data: bytes, names: Sequence[str]) -> Apart:
    """The snapshots of several matchers, for the patterns of these names.

    Raises:
        SnapshotError: as `opened`.
    """
    snapshot = opened(data, {_SEVERAL: [*names]})
    with fitting():
        each = [snapshot.arrays[str(number)].tobytes() for number in range(len(names))]
        return Apart(each, snapshot.batches.get(_SHARED))


class Restorable(Protocol):
    """A matcher whose state a snapshot has."""

    def take_over(self, snapshot: Snapshot, columns: pa.Schema) -> None:
        """Continues where the writer of the snapshot stopped; `columns` are the columns of the matcher's batches. It is
        called once, before anything else.
        """


M = TypeVar("M", bound=Restorable)


def restored(matcher: M, data: bytes, made_for: Mapping[str, Any], columns: pa.Schema) -> tuple[M, dict[str, Any]]:
    """The matcher, which is new, continuing where the writer of the snapshot stopped, and the host's state (`kept`).
    `columns` are the columns of its batches.

    Raises:
        SnapshotError: the snapshot is damaged, or was made for another pattern or other columns.
    """
    snapshot = opened(data, made_for)
    with fitting():
        matcher.take_over(snapshot, columns)
        kept: dict[str, Any] = snapshot.header["kept"]
    return matcher, kept


@contextmanager
def restoring() -> Iterator[None]:
    """Wraps a user's call to restore: it adds advice to a SnapshotError."""
    try:
        yield
    except AnotherMatcher as error:
        raise SnapshotError(f"{error}. Start without it") from error
    except SnapshotError as error:
        raise SnapshotError(f"{error}. {_START_ANEW}") from error


@contextmanager
def fitting(what: str = "the snapshot") -> Iterator[None]:
    """Wraps code that reads a snapshot: it raises SnapshotError if a part is missing or has the wrong kind."""
    try:
        yield
    except SnapshotError:
        raise
    except (AttributeError, LookupError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        detail = f"{type(error).__name__}: {error}"
        raise SnapshotError(f"{what} lacks parts, or has parts of the wrong kind ({detail})") from error


def stored_number(value: object) -> int:
    """A number of a header; ValueError if the value is not a whole number of 64 bits."""
    if type(value) is not int or not -_BEYOND_64_BITS <= value < _BEYOND_64_BITS:
        raise ValueError(f"{value!r} is not a whole number of 64 bits")
    return value


def stored_numbers(values: Mapping[str, object]) -> dict[str, int]:
    """The numbers by their names; ValueError as `stored_number`."""
    return {name: stored_number(value) for name, value in values.items()}


_SEVERAL = "patterns"
"""The only entry of what several matchers were made for: their patterns' names."""
_SHARED = "held"
_DIGESTS = ("fingerprint", "layout")
_IN_WORDS = ("pattern", "measures")
_FORM = "partial_matches"
_CALLED = {"chosen": "columns", "delay": "lateness", "lateness": "late_by"}
"""Entries that have another name for users. A message shows their values whole."""
_DECIDED_BY = {_FORM: " (where sets are possible, Limits.on_limit decides: 'drop' stores partial matches one by one)"}


def differences(before: Any, now: Mapping[str, Any]) -> list[str]:
    """Why a snapshot made for `before` does not fit `now`, as texts; empty if it fits.

    Both are JSON values. All entries must agree except "pattern" and "measures". These two only serve to describe a
    change of the pattern's digest ("fingerprint") or of the digest of the compiled pattern and measures ("layout"). So
    a measure may change as long as it is computed from state that is stored already.
    """
    if not isinstance(before, dict):
        return [f"it was made for {json.dumps(before)}"]
    if (set(before) == {_SEVERAL}) != (set(now) == {_SEVERAL}):
        return [f"it was made for {_patterns_of(before)}, and this matcher is for {_patterns_of(now)}"]
    decisive = [name for name in dict.fromkeys([*before, *now]) if name not in _IN_WORDS]
    if all(_is_same(before.get(name), now.get(name)) for name in decisive):
        return []
    was, is_ = ({name: it for name, it in made_for.items() if name not in _DIGESTS} for made_for in (before, now))
    changed = _changes(was, is_) or ["another version of Cepheid wrote it and compiles this pattern differently"]
    return [
        text for text in changed if not text.startswith(_FORM)
    ] or changed  # the form follows from the other changes


def _patterns_of(made_for: Mapping[str, Any]) -> str:
    """The patterns of a matcher in words; one that has several is made for their names alone."""
    if set(made_for) == {_SEVERAL} and isinstance(names := made_for[_SEVERAL], list):
        return f"several patterns ({', '.join(map(repr, names))})"
    name = made_for.get("name", made_for.get("pattern.name"))
    return "one pattern" if name is None else f"the pattern {name!r} alone"


def _is_same(before: Any, now: Any) -> bool:
    """Whether they are equal as JSON: 1, 1.0 and true are three different values."""
    return json.dumps(before, sort_keys=True) == json.dumps(now, sort_keys=True)


def _changes(before: Any, now: Any, where: str = "") -> list[str]:
    """How two values differ, as texts; for objects and arrays, one text for each part that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = dict.fromkeys([*before, *now])
        pairs = [(f"{where}.{name}" if where else name, before.get(name), now.get(name)) for name in names]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now) and where not in _CALLED:
        pairs = [(f"{where}[{i}]", *pair) for i, pair in enumerate(zip(before, now, strict=True))]
    else:
        was, is_ = (json.dumps(_as_written(where, value)) for value in (before, now))
        change = f"{_CALLED.get(where, where)} was {was} and is {is_}{_DECIDED_BY.get(where, '')}"
        return [] if _is_same(before, now) else [change]
    return [text for name, was, is_ in pairs for text in _changes(was, is_, name)]


def _as_written(where: str, value: Any) -> Any:
    """The value in the form in which users write it."""
    if where == "delay" and isinstance(value, int):
        return format_duration(timedelta(microseconds=value)) or "0 seconds"
    return value


def with_columns(events: pa.RecordBatch, columns: pa.Schema, what: str) -> pa.RecordBatch:
    """The events with their columns in this order: an earlier version may have written them in another order.

    Raises:
        SnapshotError: the columns differ, or an event has no time or no mask; the message calls the events `what`.
    """
    if sorted(events.schema.names) == sorted(columns.names):
        events = events.select(columns.names)
    if events.schema != columns:
        raise SnapshotError(f"{what} have other columns: {events.schema}")
    needed = MASK if EVENT_ID in columns.names else (TIME, MASK)  # a row that closes an event may have no start
    without = [name for name in columns.names if name.startswith(needed) and events.column(name).null_count]
    if without:
        raise SnapshotError(f"{what} are damaged: NULL in {', '.join(without)}")
    return events


def _parts(body: bytes, at: int, listed: list[tuple[Any, ...]]) -> Iterator[tuple[str, Any]]:
    for name, kind, length, *packed in listed:
        stored = packed[0] if packed else length
        data = body[at : at + stored]
        at += stored
        if packed:
            data = _CODEC.decompress(data, length, asbytes=True)
        yield name, np.load(BytesIO(data), allow_pickle=False) if kind == "array" else _batch(data)


def _array_bytes(array: npt.NDArray[Any]) -> bytes:
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _batch_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def _batch(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as stream:
        batch = stream.read_next_batch()
    batch.validate(full=True)
    return batch

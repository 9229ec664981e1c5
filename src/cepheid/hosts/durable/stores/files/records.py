"""The files of logs and snapshots: a line that says what the file is, then records with digests.

    {"cepheid": "log", "format": 1, "number": 7, "key": "…", "digest": "…"}
    "CPHR", number from 0, length, digest, content; and so on

The digests are keyed with the random key of the file: bytes within a record that look like another record, as a user's
event may, are not taken for one. The content of a record is a list of changes as JSON, then the binary values that they
refer to.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from cepheid.errors import SnapshotError, StoreError

FORMAT = 1
"""Increased when older versions can no longer read a store."""

_MAGIC = b"CPHR"
_HEAD = struct.Struct("<4sQQ16s")
_LENGTH = struct.Struct("<I")
_LONGEST_LINE = 1000

Kind = Literal["log", "snapshot"]


class Blob(NamedTuple):
    """The place of a binary value in a file."""

    path: Path
    at: int
    size: int

    def read(self) -> bytes:
        with self.path.open("rb") as file:
            return _read(file, self.at, self.size)


class Change(NamedTuple):
    """One write of a transaction."""

    kind: str
    value: Any
    """JSON values."""
    content: bytes | Blob | None = None


class FileHeader(NamedTuple):
    """The first line of a file."""

    kind: Kind
    number: int
    key: bytes

    @staticmethod
    def new(kind: Kind, number: int) -> FileHeader:
        return FileHeader(kind, number, os.urandom(16))

    @property
    def line(self) -> bytes:
        return line_of({"cepheid": self.kind, "number": self.number, "key": self.key.hex()})


class Record(NamedTuple):
    """A whole record of a file."""

    number: int
    end: int
    """Where the next one begins."""
    changes: list[Change]


def encode(header: FileHeader, number: int, changes: Sequence[Change], path: Path, at: int) -> tuple[bytes, Record]:
    """The bytes of the record, which will be written to the path at this place; and the record as it will be read."""
    values = [b"" if change.content is None else _bytes(change.content) for change in changes]
    listed = [[change.kind, change.value, None if change.content is None else len(value)]
              for change, value in zip(changes, values, strict=True)]  # fmt: skip
    text = json.dumps(listed, separators=(",", ":")).encode()
    content = b"".join((_LENGTH.pack(len(text)), text, *values))
    head = _HEAD.pack(_MAGIC, number, len(content), _digest(header.key, number, content))
    start = at + len(head) + _LENGTH.size + len(text)
    return head + content, Record(number, at + len(head) + len(content), _located(listed, path, start))


def read_header(path: Path, kind: Kind, number: int) -> tuple[FileHeader, int]:
    """The header of the file, and where its records begin.

    Raises:
        SnapshotError: it is damaged, or not there.
        StoreError: it has a newer format.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
    except FileNotFoundError:
        raise damaged(path, "is missing") from None
    values = values_in(path, line)
    if (values["cepheid"], values["number"]) != (kind, number):
        raise damaged(path, "is another file that was renamed")
    return FileHeader(kind, number, bytes.fromhex(values["key"])), len(line)


def values_in(path: Path, line: bytes) -> dict[str, Any]:
    """The values in a line of JSON with a format and a digest.

    Raises:
        SnapshotError: it is damaged.
        StoreError: it has a newer format.
    """
    try:
        values = json.loads(line)
        digest = values.pop("digest")
        whole = line.endswith(b"\n") and digest == _line_digest(values)
    except (ValueError, KeyError, AttributeError, TypeError):
        whole, values = False, {}
    if not whole:
        raise damaged(path, "is damaged in its first line")
    if values["format"] > FORMAT:
        raise StoreError(
            f"a newer version of Cepheid wrote {path}: it has format {values['format']}, and this version reads "
            f"formats up to {FORMAT}. Upgrade Cepheid"
        )
    return values  # type: ignore[no-any-return]


def line_of(values: dict[str, Any]) -> bytes:
    """The values as a line that `values_in` reads."""
    values = {**values, "format": FORMAT}
    return json.dumps(values | {"digest": _line_digest(values)}).encode() + b"\n"


def read_records(path: Path, header: FileHeader, at: int) -> Iterator[Record]:
    """The records from a place on, up to the first that is not whole."""
    number = 0
    with path.open("rb") as file:
        while (content := _content(file, header.key, number, at)) is not None:
            (length,) = _LENGTH.unpack_from(content)
            listed = json.loads(content[_LENGTH.size : _LENGTH.size + length])
            start = at + _HEAD.size + _LENGTH.size + length
            at += _HEAD.size + len(content)
            yield Record(number, at, _located(listed, path, start))
            number += 1


def has_record_after(path: Path, header: FileHeader, at: int) -> bool:
    """Whether there is a whole record anywhere after a place where there is none: then the place is damaged, as a
    record is written only when the one before is on the disk.
    """
    with path.open("rb") as file:
        file.seek(at)
        rest = file.read()
        found = rest.find(_MAGIC)
        while found >= 0:
            if len(rest) - found >= _HEAD.size:
                _, number, _, _ = _HEAD.unpack_from(rest, found)
                if _content(file, header.key, number, at + found) is not None:
                    return True
            found = rest.find(_MAGIC, found + 1)
    return False


def damaged(path: Path, how: str) -> SnapshotError:
    """The error for a file that is not as it was written."""
    return SnapshotError(f"{path} {how}: make the store anew from a backup, with `cepheid host restore`")


def _content(file: BinaryIO, key: bytes, number: int, at: int) -> bytes | None:
    """The content of the record with this number at this place; None if there is no whole one."""
    head = _read(file, at, _HEAD.size)
    if len(head) < _HEAD.size:
        return None
    magic, given, length, digest = _HEAD.unpack(head)
    if magic != _MAGIC or given != number or length > os.fstat(file.fileno()).st_size - at:
        return None
    content = _read(file, at + _HEAD.size, length)
    return content if len(content) == length and digest == _digest(key, number, content) else None


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _located(listed: list[list[Any]], path: Path, start: int) -> list[Change]:
    """The changes with the places of their values. These follow each other from `start` on."""
    changes = []
    for kind, value, size in listed:
        changes.append(Change(kind, value, None if size is None else Blob(path, start, size)))
        start += size or 0
    return changes


def _bytes(content: bytes | Blob) -> bytes:
    return content.read() if isinstance(content, Blob) else content


def _digest(key: bytes, number: int, content: bytes) -> bytes:
    digest = blake2b(number.to_bytes(8, "little"), key=key, digest_size=16)
    digest.update(content)
    return digest.digest()


def _line_digest(values: dict[str, Any]) -> str:
    return blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()

"""What is at a path: which kind of store or backup. So an error can say what to do with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cepheid.errors import StoreError
from cepheid.hosts.durable.disk_errors import refusing
from cepheid.hosts.durable.stores.files.recovery import STORE

_LONGEST = 20
"""The bytes at the beginning of a file that say what it is."""


class _FileKind(NamedTuple):
    scheme: str
    noun: str
    url: str
    is_one: Callable[[bytes], bool]


_FOLDER = _FileKind("file", "a folder of a host in files", "file:///FOLDER", lambda _: False)
_FILES = (
    _FileKind("sqlite", "a database of SQLite", "sqlite:///FILE", lambda head: head.startswith(b"SQLite format 3\0")),
    _FileKind("duckdb", "a database of DuckDB", "duckdb:///FILE", lambda head: head[8:12] == b"DUCK"),
    _FileKind("postgresql", "a dump of PostgreSQL", "postgresql:///DATABASE", lambda head: head.startswith(b"PGDMP")),
)


def check_is_store(path: Path, scheme: str) -> None:
    """Checks that nothing else is at the path of a store's URL. A path without anything, an empty file and, for a host
    in files, any folder are accepted.

    Raises:
        StoreError: there is something else, or it cannot be read.
    """
    with refusing(f"the store {path} cannot be opened"):
        found, is_folder = _kind_of(path), path.is_dir()
        is_empty = not path.exists() or (not is_folder and scheme != "file" and not path.stat().st_size)
    if is_empty or (is_folder and scheme == "file") or (found and found.scheme == scheme):
        return
    if found is None:
        what = "a folder" if is_folder else "a file of another kind"
        raise StoreError(f"{path} is {what}, and no store of a host: name another place")
    instead = f"its URL begins with {found.scheme}://"
    if found.scheme == "postgresql":
        instead = f"`cepheid host restore {path} {found.url}` makes a store from it, if a host wrote it"
    raise StoreError(f"{path} is {found.noun}: {instead}")


def check_is_backup(path: Path, scheme: str) -> None:
    """Checks that a backup of a store with this scheme is at the path.

    Raises:
        StoreError: there is something else, or it cannot be read.
    """
    with refusing(f"{path} cannot be read"):
        found, is_folder = _kind_of(path), path.is_dir()
    if found is None:
        what = f"this folder has no {STORE}" if is_folder else "it is a file of another kind"
        raise StoreError(f"{path} is no backup of a host, as `cepheid host backup` writes them: {what}")
    if found.scheme != scheme:
        raise StoreError(
            f"{path} is {found.noun}, and a backup is restored to a store of the same kind: give a URL like {found.url}"
        )


def _kind_of(path: Path) -> _FileKind | None:
    if path.is_dir():
        return _FOLDER if (path / STORE).exists() else None
    head = b"" if not path.is_file() else _head(path)
    return next((one for one in _FILES if one.is_one(head)), None)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LONGEST)

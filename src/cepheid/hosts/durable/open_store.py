"""Opens the store that a URL names, or makes one from a backup."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from cepheid.errors import StoreError
from cepheid.hosts.durable.store import HostStore
from cepheid.hosts.durable.stores.database import Database, Reader
from cepheid.hosts.durable.stores.file_kinds import check_is_backup, check_is_store
from cepheid.hosts.durable.stores.layout import FORMAT, HOST
from cepheid.hosts.durable.stores.sql import SqlStore
from cepheid.hosts.durable.whole_file import whole_file
from cepheid.lang.arguments import brief

if TYPE_CHECKING:
    from cepheid.hosts.durable.stores.postgresql import PostgresDatabase

_PASSWORDS = {"password", "sslpassword"}
"""The parameters of PostgreSQL's URLs that are secrets."""


class _Kind(NamedTuple):
    """What to do with the part of a URL after `scheme://`."""

    open: Callable[[str], HostStore]
    restore: Callable[[Path, str], None]


def open_store(url: str) -> HostStore:
    """The store at the URL, made if it is not there.

    Raises:
        StoreError: the scheme is unknown, or the store cannot be opened.
    """
    kind, place = _kind_of(url)
    _check_place(url)
    return kind.open(place)


def reader_of(url: str) -> Reader | None:
    """What answers queries over the store at the URL without opening it for writing, so also while another process has
    it open. None if its kind has no such thing, or if the store has an earlier format: then a host must open it.

    Raises:
        StoreError: the scheme is unknown, or there is no store.
    """
    _, place = _kind_of(url)
    _check_place(url)
    match scheme_of(url):
        case "sqlite":
            from cepheid.hosts.durable.stores.sqlite_reader import SqliteReader

            reader: Reader = SqliteReader(_path(place))
        case "postgresql":
            with _with_driver():
                from cepheid.hosts.durable.stores.postgresql_reader import PostgresReader
            reader = PostgresReader(url)
        case _:
            return None
    try:
        written = reader.own_query(f"SELECT format FROM {HOST}").column(0)[0].as_py()
    except StoreError as error:
        raise StoreError(f"no store of a host can be read there: {error}") from error
    return reader if written == FORMAT else None


def restore(backup: Path, url: str) -> None:
    """Makes a store at the URL from what `HostStore.backup` has written on one of the same kind.

    Raises:
        StoreError: there is a store at the URL, or the backup is none, or is damaged.
    """
    if not backup.exists():
        raise StoreError(f"there is no backup {backup}")
    kind, place = _kind_of(url)
    check_is_backup(backup, str(scheme_of(url)))
    kind.restore(backup, place)


def _kind_of(url: str) -> tuple[_Kind, str]:
    if not isinstance(url, str):
        raise StoreError(f"a store is named by a URL, as in 'sqlite:///alerts.db'; got {brief(url)}")
    scheme, separator, place = url.partition("://")
    if not separator or scheme not in _KINDS:
        known = ", ".join(f"{name}://" for name in _KINDS)
        shown = scheme.partition(":")[0]  # not the whole URL: it may have a password
        raise StoreError(f"a store is named by a URL that begins with one of {known}; this one begins with {shown!r}")
    if scheme == "postgresql" and _has_password(url):
        raise StoreError(
            "the URL has a password, which others can see in lists of processes: leave it out. PostgreSQL takes it "
            "from ~/.pgpass, from the file that ?passfile= names, or from the variable PGPASSWORD"
        )
    return _KINDS[scheme], place


def _has_password(url: str) -> bool:
    parts = urlsplit(url)
    return parts.password is not None or not _PASSWORDS.isdisjoint(name for name, _ in parse_qsl(parts.query))


def scheme_of(url: str) -> str | None:
    """The scheme of a store's URL; None if it is no URL of a store."""
    scheme, separator, _ = url.partition("://")
    return scheme if separator and scheme in _KINDS else None


def path_of(url: str) -> Path | None:
    """The file or folder of the store at the URL; None if it is in a server's database.

    Raises:
        StoreError: the scheme is unknown, or the rest names no place.
    """
    _, place = _kind_of(url)
    scheme = scheme_of(url)
    if scheme == "postgresql":
        return None
    return _folder(place) if scheme == "file" else _path(place)


def _check_place(url: str) -> None:
    """
    Raises:
        StoreError: at the place of the store there is something else.
    """
    path = path_of(url)
    if path is not None:
        check_is_store(path, str(scheme_of(url)))


def _sqlite(path: Path) -> Database:
    from cepheid.hosts.durable.stores.sqlite import SqliteDatabase

    return SqliteDatabase(path)


def _duckdb(path: Path) -> Database:
    from cepheid.hosts.durable.stores.duckdb import DuckDbDatabase

    return DuckDbDatabase(path)


def _files(place: str) -> HostStore:
    from cepheid.hosts.durable.stores.files.store import FileStore

    return FileStore(_folder(place))


def _restore_files(backup: Path, place: str) -> None:
    from cepheid.hosts.durable.stores.files.copies import restore as restore_files

    restore_files(backup, _folder(place))


def _in_file(connect: Callable[[Path], Database]) -> _Kind:
    """A database that is one file."""

    def open_(place: str) -> HostStore:
        return SqlStore(lambda: connect(_path(place)))

    def restored(backup: Path, place: str) -> None:
        with whole_file(_path(place)) as new:
            shutil.copyfile(backup, new)
            with closing(connect(new)) as database:
                _check_is_store(backup, database)

    return _Kind(open_, restored)


def _postgresql(place: str) -> PostgresDatabase:
    with _with_driver():
        from cepheid.hosts.durable.stores.postgresql import PostgresDatabase
    return PostgresDatabase(f"postgresql://{place}")


@contextmanager
def _with_driver() -> Iterator[None]:
    """Wraps an import that needs psycopg."""
    try:
        yield
    except ImportError as error:
        raise StoreError("PostgreSQL needs the package psycopg: pip install 'cepheid[postgresql]'") from error


def _restore_postgresql(backup: Path, place: str) -> None:
    with closing(_postgresql(place)) as database:
        if HOST in database.tables():
            raise StoreError("there is a store in this PostgreSQL database already: restore into another one")
        database.restore(backup)
        _check_is_store(backup, database)


def _check_is_store(backup: Path, database: Database) -> None:
    if HOST not in database.tables():
        raise StoreError(f"{backup} is no backup of a host")


def _path(place: str) -> Path:
    """The path in what follows `scheme://`: `/alerts.db` is in the current folder, `//var/alerts.db` is not.

    Raises:
        StoreError: it names no file, has options, or its folder does not exist.
    """
    path = Path(place.removeprefix("/"))
    if path.name.startswith(":"):
        raise StoreError(f"{path} is no file, and a host stores what survives a crash: name a file")
    if not place.startswith("/") or not path.name:
        raise StoreError(
            "a file comes after three slashes, as in sqlite:///alerts.db, or after four if its path is absolute, as in "
            f"sqlite:////var/alerts.db; here after the first two comes {place!r}"
        )
    if not path.parent.is_dir():
        absolute = "" if path.is_absolute() else ". The path is relative: after four slashes it would begin with /"
        raise StoreError(f"the store {path} cannot be opened: there is no folder {path.parent}{absolute}")
    _check_is_plain(path)
    return path


def _check_is_plain(path: Path) -> None:
    """
    Raises:
        StoreError: the path of a new store has options or an input at its end, as in other URLs.
    """
    found = re.search(r"[?#].*", str(path))
    if found is not None and not path.exists():
        what = "options" if found[0].startswith("?") else "an input"
        raise StoreError(
            f"this URL of a store has {what} at its end, which would be in a file's name: leave {found[0]!r} out"
        )


def _folder(place: str) -> Path:
    """The folder in what follows `file://`, which is an absolute path.

    Raises:
        StoreError: it is none, or has options.
    """
    if not place.startswith("/"):
        raise StoreError(f"file:// is followed by an absolute path, as in file:///var/lib/alerts, not by {place!r}")
    path = Path("/" + place.lstrip("/"))
    _check_is_plain(path)
    return path


_KINDS = {
    "file": _Kind(_files, _restore_files),
    "sqlite": _in_file(_sqlite),
    "duckdb": _in_file(_duckdb),
    "postgresql": _Kind(lambda place: SqlStore(lambda: _postgresql(place)), _restore_postgresql),
}

"""Opens the store that a URL names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cepheid.errors import StoreError
from cepheid.hosts.durable.store import HostStore
from cepheid.hosts.durable.stores.sql import SqlStore


def open_store(url: str) -> HostStore:
    """The store at the URL, made if it is not there.

    Raises:
        StoreError: the scheme is unknown, or the store cannot be opened.
    """
    scheme, separator, place = url.partition("://")
    if not separator or scheme not in _STORES:
        known = ", ".join(f"{name}://" for name in _STORES)
        raise StoreError(f"a store is named by a URL that begins with one of {known}, got {url!r}")
    return _STORES[scheme](place)


def path_of(url: str) -> Path | None:
    """The file or folder of the store at the URL; None if it is in a server's database."""
    scheme, _, place = url.partition("://")
    if scheme == "postgresql":
        return None
    return Path(place if scheme == "file" else _path(place))


def _sqlite(place: str) -> HostStore:
    from cepheid.hosts.durable.stores.sqlite import SqliteDatabase

    return SqlStore(lambda: SqliteDatabase(_path(place)))


def _duckdb(place: str) -> HostStore:
    from cepheid.hosts.durable.stores.duckdb import DuckDbDatabase

    return SqlStore(lambda: DuckDbDatabase(_path(place)))


def _postgresql(place: str) -> HostStore:
    try:
        from cepheid.hosts.durable.stores.postgresql import PostgresDatabase
    except ImportError as error:
        raise StoreError("PostgreSQL needs the package psycopg: pip install 'cepheid[postgresql]'") from error
    return SqlStore(lambda: PostgresDatabase(f"postgresql://{place}"))


def _path(place: str) -> str:
    """The path in what follows the scheme: `/alerts.db` is in the current folder, `//var/alerts.db` is not."""
    return place.removeprefix("/")


_STORES: dict[str, Callable[[str], HostStore]] = {"sqlite": _sqlite, "duckdb": _duckdb, "postgresql": _postgresql}

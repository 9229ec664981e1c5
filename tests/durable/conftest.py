"""Stores for the tests of durable hosts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.durable.postgres import Server, find_programs, running_server

STORES = ("file", "sqlite", "duckdb", "postgresql")
_NUMBERS = count()


def pytest_itemcollected(item: pytest.Item) -> None:
    """`make test` has a file, SQLite and a database with a server; `make test-long` DuckDB, and kills with SQLite."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and (
        "duckdb" in callspec.params.values() or (item.path.name == "test_kill.py" and callspec.id == "sqlite")
    ):
        item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server. On a machine without one its tests are skipped, but never in CI."""
    if find_programs() is None and not os.environ.get("CI"):
        pytest.skip(
            "there is no PostgreSQL server: NOTHING IS TESTED AGAINST IT. On Debian: apt-get install postgresql"
        )
    # A Unix socket's path has at most 107 bytes, and the server's own user must reach the folder.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    try:
        with running_server(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store."""
    return str(request.param)


@pytest.fixture
def new_store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes URLs of new, empty stores."""

    def url() -> str:
        number = next(_NUMBERS)
        if kind == "postgresql":
            server: Server = request.getfixturevalue("postgres")
            return server.url(f"store{number}")
        return f"{kind}:///{tmp_path}/store{number}.{kind}"

    return url


@pytest.fixture
def url(new_store: Callable[[], str]) -> str:
    """The URL of a new, empty store."""
    return new_store()

"""Who may read a store while it is open, and what a query gives back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.durable.test_stores import OPEN_TO_OTHERS, events, prepared

from cepheid.cli.failure import FileProblem
from cepheid.cli.host.opened import asked
from cepheid.errors import StoreError
from cepheid.host import open_host

QUERY = "SELECT name, status FROM patterns"


@pytest.mark.parametrize("kind", OPEN_TO_OTHERS)
def test_while_a_program_has_it_open(url: str) -> None:
    """Commands that read ask SQLite and PostgreSQL also while a program has the store open; it goes on writing."""
    with prepared(url) as host:
        host.feed(events("a"), input="events")
        with asked(url) as ask:
            assert ask(QUERY).to_pylist() == [{"name": "pairs", "status": "running"}]
            host.feed(events("b", after=1), input="events")
            assert ask("SELECT * FROM matches_pairs").num_rows == 1


def test_while_nobody_has_it_open(url: str) -> None:
    """They ask any store, and change nothing: the next host is the same writer."""
    prepared(url).close()
    for _ in range(2):
        with asked(url) as ask:
            assert ask(QUERY).num_rows == 1
            with pytest.raises(StoreError):
                ask("DELETE FROM patterns")
    with open_host(url) as host:
        assert host.sql(QUERY).num_rows == 1


def test_no_store(tmp_path: Path) -> None:
    """Where there is no store, none is made."""
    with (
        pytest.raises(FileProblem, match=r"there is no store .*: make it with `cepheid"),
        asked(f"sqlite:///{tmp_path}/no"),
    ):
        pass
    (tmp_path / "empty.db").touch()
    url = f"sqlite:///{tmp_path}/empty.db"
    with pytest.raises(StoreError, match="no store of a host can be read there: SQLite"), asked(url):
        pass
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_values_of_several_types(tmp_path: Path) -> None:
    """A column of a result has values of one type. In SQLite it may have others."""
    with (
        prepared(f"sqlite:///{tmp_path}/host.db") as host,
        pytest.raises(StoreError, match="column 'x' of the result has values of several types"),
    ):
        host.sql("SELECT 1 AS x UNION ALL SELECT 'a'")

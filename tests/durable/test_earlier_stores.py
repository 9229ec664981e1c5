"""Stores of every earlier format continue."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from scripts.stored_hosts import fed

from cepheid.host import open_host
from cepheid.hosts.durable.stores.layout import FORMAT
from cepheid.hosts.durable.stores.migrations import MIGRATIONS

STORED = Path(__file__).parent / "stores"
FILES = sorted(path.name for path in STORED.glob("*.gz"))


@pytest.mark.parametrize("name", FILES)
def test_earlier_store(name: str, tmp_path: Path) -> None:
    """A store that an earlier version has written is brought to the present format, and its partial matches go on."""
    kind = name.split(".")[1]
    path = tmp_path / f"store.{kind}"
    path.write_bytes(gzip.decompress((STORED / name).read_bytes()))
    for _ in range(2):  # also once it has the present format
        with open_host(f"{kind}:///{path}") as host:
            assert host.sql("SELECT format FROM cepheid_host").to_pylist() == [{"format": FORMAT}]
            assert host.sql('SELECT "user", first FROM open_pairs ORDER BY first').to_pylist() == [
                {"user": "v", "first": 1},
                {"user": "w", "first": 3},
            ]
    with open_host(f"{kind}:///{path}") as host:
        assert host.inputs["events"].position == 4
        fed(host, 4, "wb", "vb")
        found = host.sql('SELECT "user" FROM matches_pairs ORDER BY match_start').column(0).to_pylist()
        assert found == ["u", "v", "w"]


def test_each_format_has_stores_and_a_migration() -> None:
    """There are stores of each format in each database that is a file, and a migration from each earlier format."""
    assert [f"{format_}.{kind}.gz" for format_ in range(1, FORMAT + 1) for kind in ("duckdb", "sqlite")] == FILES
    assert len(MIGRATIONS) == FORMAT - 1

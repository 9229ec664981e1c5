"""Stores of every earlier format continue."""

from __future__ import annotations

import gzip
import json
import lzma
import tarfile
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


def test_outbox_of_an_earlier_store(tmp_path: Path) -> None:
    """Files whose records have the first number of rows in the outbox in place of all are read, and the numbers go on.

    The store was written by commit fc68c57^: two patterns, each of which has found two matches in one feed.
    """
    with tarfile.open(STORED / "first_of_outbox.file.tar.xz") as stored:
        stored.extractall(tmp_path / "store", filter="data")
    records = (tmp_path / "store" / "log-00000001").read_bytes()
    assert b'"first":1,"pattern":"pairs"' in records
    assert b'"first":3,"pattern":"others"' in records
    for _ in range(2):  # also once a host has written a snapshot of its own
        with open_host(f"file://{tmp_path}/store") as host:
            rows = host.sql("SELECT number, pattern, content FROM outbox ORDER BY number").to_pylist()
            assert [(row["number"], row["pattern"], json.loads(row["content"])["first"]) for row in rows[:4]] == [
                (1, "pairs", 0),
                (2, "pairs", 1),
                (3, "others", 0),
                (4, "others", 1),
            ]
            if len(rows) == 4:
                fed(host, 5, "wb")
                host.backup(tmp_path / "backup")
    assert [(row["number"], row["pattern"]) for row in rows[4:]] == [(5, "pairs"), (6, "others")]
    with open_host(f"file://{tmp_path}/backup") as host:
        assert host.sql("SELECT number FROM outbox ORDER BY number").column(0).to_pylist() == [1, 2, 3, 4, 5, 6]


def test_a_pattern_that_drains_in_an_earlier_store(tmp_path: Path) -> None:
    """It starts nothing more, but for events that waited when it began to drain.

    The store was written by commit a620fa9. There u has begun and v waits; then the pattern was retired, and w and x
    came.
    """
    path = tmp_path / "store.sqlite"
    path.write_bytes(lzma.decompress((STORED / "draining.sqlite.xz").read_bytes()))
    with open_host(f"sqlite:///{path}") as host:
        fed(host, 4, "ub", "vb", "wb", "xb", "zz", "zz")
        found = host.sql('SELECT "user" FROM matches_pairs ORDER BY match_start').column(0).to_pylist()
    assert found == ["u", "v"]


def test_each_format_has_stores_and_a_migration() -> None:
    """There are stores of each format in each database that is a file, and a migration from each earlier format."""
    assert [f"{format_}.{kind}.gz" for format_ in range(1, FORMAT + 1) for kind in ("duckdb", "sqlite")] == FILES
    assert len(MIGRATIONS) == FORMAT - 1

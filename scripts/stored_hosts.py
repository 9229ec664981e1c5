"""Writes a store of each database that is a file, as this version stores it: tests/durable/test_earlier_stores.py
continues them with later versions. Run it before the format changes.

python scripts/stored_hosts.py tests/durable/stores
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from cepheid import Pattern
from cepheid.host import Host, open_host
from cepheid.hosts.durable.stores.layout import FORMAT

KINDS = ("sqlite", "duckdb")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("user", pa.string()), ("what", pa.string())]
)
START = datetime(2024, 3, 4, 10, tzinfo=UTC)
PAIRS = Pattern.begin("a", name="pairs").where("what = 'a'").followed_by("b").where("what = 'b'").within("10 minutes")


def fed(host: Host, first: int, *users_and_kinds: str) -> None:
    """Feeds events of one letter for the user and one for the kind, a minute apart; `first` is the number of the first
    one.
    """
    rows = [
        {"id": i, "at": START + timedelta(minutes=i), "user": letters[0], "what": letters[1]}
        for i, letters in enumerate(users_and_kinds, first)
    ]
    host.feed(pa.Table.from_pylist(rows, SCHEMA), input="events", position=first + len(rows))


def write(url: str) -> None:
    """A store with a match, two open partial matches, a kept feed, a snapshot and a log."""
    with open_host(url) as host:
        host.input("events", SCHEMA, time="at", sequence="id", keep="1 day")
        host.deploy(PAIRS, input="events", key="user", promote={"first": "a.id"}, outputs=("matches", "timeouts"))
        fed(host, 0, "ua", "va")
        fed(host, 2, "ub", "wa")


def main() -> None:
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        for kind in KINDS:
            path = Path(place) / f"store.{kind}"
            write(f"{kind}:///{path}")
            (folder / f"{FORMAT}.{kind}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()

"""The values by which partial matches wait for events are columns of the tables of open partial matches."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.durable.test_stores import START

from cepheid import Pattern
from cepheid.errors import StoreError
from cepheid.host import Host, open_host

SCHEMA = pa.schema(
    {"id": pa.int64(), "at": pa.timestamp("us", "UTC"), "what": pa.string(), "x": pa.int64(), "y": pa.string()}
)
CHAIN = (
    Pattern.begin("a", name="chain", version="1")
    .where("what = 'a'")
    .followed_by_any("b")
    .where("what = 'b' AND x = a.x")
    .followed_by("c")
    .where("what = 'c' AND y = b.y AND x > a.x")
)


def fed(host: Host, *events: tuple[str, int | None, str | None]) -> None:
    """Feeds events, a minute apart."""
    first = host.inputs["events"].events
    rows = [
        {"id": number, "at": START + timedelta(minutes=number), "what": what, "x": x, "y": y}
        for number, (what, x, y) in enumerate(events, first)
    ]
    host.feed(pa.Table.from_pylist(rows, SCHEMA), input="events")


def prepared(url: str, pattern: Pattern = CHAIN, **how: Any) -> Host:
    host = open_host(url)
    host.input("events", SCHEMA, time="at", sequence="id")
    host.deploy(pattern, input="events", **how)
    return host


def test_correlation_values(url: str) -> None:
    """Each earlier attribute that a condition equates with one of the current event is a column of its type; NULL until
    its stage takes an event. A restarted host has the same columns.
    """
    with prepared(url) as host:
        fed(host, ("a", 1, "p"), ("a", None, "q"), ("b", 1, "r"))
    with open_host(url) as host:
        fed(host, ("b", 1, None))
        rows = host.sql("SELECT stage, a_x, b_y FROM open_chain ORDER BY stage, a_x, b_y").to_pylist()
        assert sorted(map(str, rows)) == sorted(
            str({"stage": stage, "a_x": x, "b_y": y})
            for stage, x, y in [("a", 1, None), ("a", None, None), ("b", 1, "r"), ("b", 1, None)]
        )
        assert host.sql("SELECT count(*) AS n FROM open_chain WHERE a_x = 1 AND b_y = 'r'").to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_indexes(url: str, kind: str) -> None:
    """There is an index on each correlation value, also where a later version has added its column."""
    catalog = {
        "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'open_chain'",
        "postgresql": "SELECT indexdef AS sql FROM pg_indexes WHERE tablename = 'open_chain'",
    }[kind]
    with prepared(url) as host:
        later = CHAIN.followed_by("d").where("x = c.x")
        host.deploy(Pattern(later.stages, name="chain", version="2"), input="events", old="drop")
        found = [row["sql"].replace('"', "") for row in host.sql(catalog).to_pylist()]
        for column in ("a_x", "b_y", "c_x"):
            assert sum(f"({column})" in index for index in found) == 1, found


def test_promoted_by_another_name(url: str) -> None:
    """An attribute that is promoted has the name that was asked for, and no second column."""
    with prepared(url, promote={"other": "a.x"}) as host:
        fed(host, ("a", 1, None))
        row = host.sql("SELECT * FROM open_chain").to_pylist()[0]
        assert (row["other"], row["b_y"], "a_x" in row) == (1, None, False)


def test_long_values(url: str) -> None:
    """A text that is too long for an index of a database may be a correlation value."""
    long = secrets.token_hex(10_000)
    with prepared(url) as host:
        fed(host, ("a", 1, None), ("b", 1, long))
        assert host.sql(f"SELECT stage FROM open_chain WHERE b_y = '{long}'").to_pylist() == [{"stage": "b"}]


def test_other_types_in_a_later_version(url: str) -> None:
    """A later version whose correlation value has another type is refused, unless it is promoted by another name."""
    schema = SCHEMA.set(SCHEMA.get_field_index("x"), pa.field("x", pa.string()))
    with prepared(url) as host:
        host.input("others", schema, time="at", sequence="id")
        second = Pattern.begin("a", name="chain", version="2").followed_by("b").where("x = a.x")
        with pytest.raises(StoreError, match=r"'a_x' is .* there, not .*Give these columns other names"):
            host.deploy(second, input="others", old="drop")
        host.deploy(second, input="others", old="drop", promote={"a_text": "a.x"})

"""The documented tables are those of a store."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from tests.durable.test_stores import PAIRS, events

from cepheid.errors import EventError, PatternError, SchemaError
from cepheid.host import open_host
from cepheid.hosts.durable.stores.layout import TABLES

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "host_tables.md"
PLACES = {
    "the key's columns": ["user"],
    "promoted columns": ["first"],
    "correlation values": ["a_id"],
    "measures": [],
}


def documented() -> dict[str, list[str]]:
    """The columns of each table, as the page lists them."""
    tables = {}
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        columns: list[str] = []
        for line in re.findall(r"^\| (.+?) \|", text, re.MULTILINE):
            columns += PLACES.get(line, re.findall(r"`(\w+)`", line))
        for table in title.split(", "):
            tables[table.replace("SLUG", "pairs")] = columns
    return tables


def test_documented_tables(url: str) -> None:
    """Each table for users is on the page, with all of its columns and no others."""
    outputs = ("matches", "timeouts", "no_match", "late")
    with open_host(url) as host:
        host.input("events", events().schema, time="at", sequence="id")
        pattern = PAIRS.followed_by("c").where("id = a.id")
        host.deploy(pattern, input="events", key="user", promote={"first": "a.at"}, outputs=outputs)
        host.feed(events("a", "b", "a"), input="events")
        tables = documented()
        del tables["inconsistent_pairs"]  # patterns of stages have none
        host.subscribe("copies", pattern="pairs", to="table://copies")
        own = {name for name in TABLES if not name.startswith("cepheid_")} | {"subscriptions", "dead_letters"}
        assert own | {f"{prefix}_pairs" for prefix in ("open", *outputs)} == tables.keys()
        for table, columns in tables.items():
            there = set(host.sql(f"SELECT * FROM {table} LIMIT 0").column_names)
            is_found = table.removesuffix("_pairs") in outputs
            without = {"event"} if is_found and table != "late_pairs" else set()
            without |= {"cause"} if is_found and table != "no_match_pairs" else set()
            assert there == set(columns) - without, table


def test_scripts_and_patterns(url: str) -> None:
    """`scripts` has a row for each step, `patterns` the problems and the position at which a pattern was deployed."""
    with open_host(url) as host:
        host.input("events", events().schema, time="at", sequence="id")
        host.feed(events("a", "b"), input="events", position=2)
        host.deploy(PAIRS.not_followed_by("c").where("what = 'c'").followed_by("d"), input="events", key="user")
        rows = host.sql("SELECT stage, event, activating, action FROM scripts ORDER BY step").to_pylist()
        assert [[*row.values()] for row in rows] == [
            ["a", "what = 'a'", True, "starts a partial match; then it waits for 'b'"],
            ["b", "what = 'b'", False, "is taken; then it waits for 'd'"],
            ["c", "what = 'c'", False, "ends the partial match without a match"],
            ["d", "any", False, "is taken; then it is a match"],
            [None, "10 minutes since the first event", False, "ends the partial match as a timeout"],
        ]
        assert host.sql("SELECT position, problems FROM patterns").to_pylist() == [{"position": "2", "problems": None}]


def test_a_feed_without_events(url: str) -> None:
    """An empty feed, of an empty file say, is no error where events are kept, and moves the position."""
    with open_host(url) as host:
        host.input("events", events().schema, time="at", sequence="id", keep="1 day")
        for position in (1, 2):
            host.feed(events().schema.empty_table(), input="events", position=position)
        host.feed(events().schema.empty_table(), input="events", position=3)
        assert host.inputs["events"].position == 3


def test_long_names_and_odd_versions(url: str) -> None:
    """Patterns whose names begin alike have rows of their own, and a version may have any character that is shown."""
    names = [f"{'a_name_as_long_as_tables_have_it_at_most_and_longer'}_{i}" for i in range(3)]
    with open_host(url) as host:
        host.input("events", events().schema, time="at", sequence="id")
        tables = []
        for i, name in enumerate(names):
            pattern = PAIRS.named(name, version="50% '\"\\é").within(f"{i + 1} minutes")
            deployed = host.deploy(pattern, input="events", key="user", outputs=("matches", "timeouts"))
            tables.append((f"matches_{deployed.slug}", f"timeouts_{deployed.slug}"))
        host.feed(events(*"azb"), input="events")
        host.feed(events("b", after=9), input="events")
        found = [tuple(host.sql(f"SELECT * FROM {table}").num_rows for table in both) for both in tables]
        assert found == [(0, 1), (0, 1), (1, 0)]
        assert host.sql(f"SELECT version FROM {tables[2][0]}").column(0).to_pylist() == ["50% '\"\\é"]


def test_a_version_that_databases_refuse(url: str) -> None:
    """Not all databases take all characters."""
    with open_host(url) as host:
        host.input("events", events().schema, time="at", sequence="id")
        with pytest.raises(PatternError, match=r"version '1.x00' has a character that databases may not take"):
            host.deploy(PAIRS.named("pairs", version="1\0"), input="events", key="user")


def test_what_may_change_of_an_input(url: str) -> None:
    """Whether events without a key are dropped, and how long events are kept: also while partial matches are open."""
    with open_host(url) as host:
        declared = {"time": "at", "sequence": "id"}
        host.input("events", events().schema, **declared)
        host.deploy(PAIRS, input="events", key="user", outputs=("matches", "late"))
        host.feed(events("a"), input="events")
        nobody = events("a", after=1).set_column(2, "user", pa.array([None], pa.string()))
        with pytest.raises(EventError, match="1 with a NULL in the key"):
            host.feed(nobody, input="events")
        host.input("events", events().schema, **declared, nulls="drop", keep="1 day")
        host.feed(nobody, input="events")
    with open_host(url) as host:
        host.feed(pa.concat_tables([nobody, events("b", after=2)]), input="events")
        assert host.sql("SELECT * FROM matches_pairs").num_rows == 1
        with pytest.raises(
            SchemaError, match=r"with lateness '0 seconds', not '1 minute'\. Only nulls and keep may change"
        ):
            host.input("events", events().schema, **declared, lateness="1 minute")

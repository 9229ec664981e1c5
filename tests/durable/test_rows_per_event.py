"""A deployed pattern with rows_per="event": its tables have a row for each event of each match."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.durable.test_stores import PAIRS, SCHEMA, START, count, events

from cepheid import OccurrencePattern, Pattern, SchemaError, detect
from cepheid.host import Host, Letter, MatchesOf, open_host

MEASURES = {"n": "count(a)", "all": "FINAL count(a)"}
OPTIONS: dict[str, Any] = {"key": "user", "rows_per": "event"}
PLACES = 'match_id, position, stage, stage_position, id, what, n, "all"'


def prepared(url: str, **how: Any) -> Host:
    host = open_host(url)
    host.input("events", SCHEMA, time="at", sequence="id")
    host.deploy(PAIRS, input="events", **{**OPTIONS, **how})
    return host


def version(number: str) -> Pattern:
    return PAIRS.named("pairs", version=number)


def test_the_rows_of_detect(url: str) -> None:
    """The tables have the rows that `detect` finds, also if the host is opened anew in between, and late events with
    their columns.
    """
    whole = events(*"aabab")
    with prepared(url, measures=MEASURES, outputs=("matches", "late")) as host:
        host.feed(whole.slice(0, 2), input="events")
    with open_host(url) as host:
        fed = host.feed(whole.slice(2), input="events")
        late = pa.Table.from_pylist([{"id": 9, "at": START, "user": "u", "what": "a"}], SCHEMA)
        host.feed(late, input="events")
        found = host.sql(f"SELECT {PLACES} FROM matches_pairs ORDER BY match_id, position").to_pylist()
        (missed,) = host.sql("SELECT * FROM late_pairs").to_pylist()
    expected = detect(whole, PAIRS, time="at", sequence="id", measures=MEASURES, **OPTIONS)
    names = ["match_id", "position", "stage", "stage_position", "id", "what", "n", "all"]
    rows = sorted(expected.select(names).to_pylist(), key=lambda row: (str(row["match_id"]), row["position"]))
    assert found == rows
    assert len(rows) == 6
    assert len(fed.rows["pairs"]) == 6
    assert (missed["id"], missed["what"]) == (9, "a")
    assert not {"stage", "position", "stage_position"} & missed.keys()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_every_kind_of_pattern(new_store: Callable[[], str]) -> None:
    """Matches of occurrences have rows of events, too."""
    found = OccurrencePattern.of("?p:a ; b").taxonomy("what").named("found")
    with open_host(new_store()) as host:
        host.input("events", SCHEMA, time="at", sequence="id")
        host.deploy(found, input="events", key="user", rows_per="event")
        host.feed(events(*"ab"), input="events")
        host.advance_time("2024-03-04T11:00:00Z")
        rows = host.sql("SELECT match_id, position, id FROM matches_found ORDER BY position").to_pylist()
    expected = detect(events(*"ab"), found, time="at", sequence="id", **OPTIONS)
    assert rows == expected.select(["match_id", "position", "id"]).to_pylist()
    assert rows


def test_a_match_is_one_message(url: str) -> None:
    """A subscriber gets a match in one message, with its events in a list; a condition reads the columns of matches."""
    letters: list[Letter] = []
    with prepared(url, measures={"n": "count(a)"}) as host:
        host.subscribe("all", to=letters.append, where="user = 'u' AND match_start < match_end")
        host.subscribe("stored", to="table://messages")
        host.feed(events(*"aab"), input="events")
        assert host.deliver()
        assert count(host, "outbox") == count(host, "messages") == 2
        numbers = host.sql("SELECT number FROM outbox ORDER BY number").column(0).to_pylist()
        assert host.figures().outbox == 2
    assert numbers == [letter.number for letter in letters] == [1, 2]
    by_start = sorted(letters, key=lambda letter: str(letter.row["match_start"]))
    found = [[(event["position"], event["id"], event["n"]) for event in letter.row["events"]] for letter in by_start]
    assert found == [
        [(1, 0, 1), (2, 2, 1)],
        [(1, 1, 1), (2, 2, 1)],
    ]
    assert letters[0].id == letters[0].match_id
    assert {"match_id", "user", "match_start", "match_end", "detected_at"} <= letters[0].row.keys()


def test_two_versions_find_a_match_once(url: str) -> None:
    """A match that a version which drains and a new one find is in the tables once; rows leave the tables by match."""
    with prepared(url) as host:
        host.feed(events("a"), input="events")
        host.deploy(version("2"), input="events", **OPTIONS, old="drain")
        host.feed(events(*"ab", after=1), input="events")
        rows = host.sql("SELECT version, id FROM matches_pairs ORDER BY version, id").to_pylist()
    assert [(row["version"], row["id"]) for row in rows] == [("1", 0), ("1", 2), ("2", 1), ("2", 2)]


@pytest.mark.parametrize(("first", "then"), [("match", "event"), ("event", "match")])
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_another_kind_of_rows_is_refused(url: str, first: str, then: str) -> None:
    """A later version of a pattern cannot have other rows than the tables that are there, also after a restart."""
    with prepared(url, rows_per=first) as host:
        host.retire("pairs", how="drop")
    with open_host(url) as host:
        with pytest.raises(
            SchemaError, match=f"have a row for each {first}, from version '1': give rows_per='{first}'"
        ):
            host.deploy(version("2"), input="events", key="user", rows_per=then)
        host.deploy(version("2"), input="events", key="user", rows_per=first)


@pytest.mark.parametrize("kind", ["file"])
def test_refusals(url: str) -> None:
    """Wrong values, columns that databases cannot tell apart, and tiers over rows of events are refused."""
    columns = pa.schema([*SCHEMA, ("Version", pa.string()), ("ID", pa.int64()), ("events", pa.string())])
    with prepared(url, measures=MEASURES) as host:
        host.input("more", columns, time="at")
        with pytest.raises(SchemaError, match="rows_per: 'row' is not one of 'match', 'event'"):
            host.deploy(version("2"), input="events", key="user", rows_per="row")  # type: ignore[arg-type]
        named = PAIRS.named("other")
        with pytest.raises(SchemaError) as error:
            host.deploy(named, input="more", key="events", rows_per="event")
        own = "a column that the tables have themselves"
        assert str(error.value).splitlines() == [
            f"columns: databases do not distinguish 'Version' from {own}. Rename it, or choose columns=[…]",
            "columns: databases do not distinguish 'ID' from column 'id'. Rename it, or choose columns=[…]",
            "key: messages to subscribers have a column 'events' of their own. Rename the column of the events",
        ]
        host.deploy(named, input="more", key="user", columns=["id", "what"], rows_per="event")
        with pytest.raises(SchemaError, match="pattern 'pairs' has a row for each event"):
            host.deploy(PAIRS.named("tier"), input=MatchesOf(("pairs",)), key="user")


def test_columns_of_all_types(url: str) -> None:
    """The columns of events have types of the database; nested ones are JSON."""
    columns: dict[str, tuple[pa.DataType, Any]] = {
        "flag": (pa.bool_(), True),
        "small": (pa.int8(), 3),
        "large": (pa.uint64(), 5),
        "half": (pa.float32(), 0.5),
        "amount": (pa.decimal128(9, 2), Decimal("1.50")),
        "day": (pa.date32(), date(2024, 3, 4)),
        "clock": (pa.time64("us"), time(1, 2, 3)),
        "length": (pa.duration("us"), timedelta(seconds=3)),
        "bytes": (pa.binary(), b"x"),
        "many": (pa.large_binary(), b"y"),
        "text": (pa.large_string(), "t"),
        "view": (pa.string_view(), "v"),
        "local": (pa.timestamp("us"), datetime(2024, 3, 4)),  # noqa: DTZ001
        "coded": (pa.dictionary(pa.int32(), pa.string()), "c"),
        "list": (pa.list_(pa.int64()), [1, 2]),
        "nothing": (pa.null(), None),
    }
    plain = events(*"ab")
    for name, (type_, value) in columns.items():
        plain = plain.append_column(name, pa.array([value, None], pa.null() if value is None else type_))
    with open_host(url) as host:
        host.input("events", plain.schema, time="at", sequence="id")
        host.deploy(PAIRS, input="events", **OPTIONS)
        host.feed(plain, input="events")
        first, second = host.sql("SELECT * FROM matches_pairs ORDER BY position").to_pylist()
    assert (first["small"], first["half"], first["text"], first["coded"]) == (3, 0.5, "t", "c")
    assert [first[name] for name in ("bytes", "many", "view")] == [b"x", b"y", "v"]
    assert (json.loads(first["list"]) if isinstance(first["list"], str) else first["list"]) == [1, 2]
    assert all(second[name] is None for name in columns)

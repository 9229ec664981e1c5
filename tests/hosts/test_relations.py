"""Columns of DuckDB's relations come back with their types and values."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from cepheid import Pattern, SchemaError, detect, match_events

TYPES = {
    "bits": "'101'::BIT",
    "kind": "'x'::ENUM('x', 'it''s BIT')",
    "id": "'7a0c5e5e-0000-4000-8000-000000000001'::UUID",
    "json": """'{"a":  1}'::JSON""",
    "huge": "170141183460469231731687303715884105727::HUGEINT",
    "unsigned": "5::UHUGEINT",
    "big": "12345678901234567890123456789012345678901234567890::BIGNUM",
    "clock": "'01:02:03+01'::TIMETZ",
    "small": "5::UTINYINT",
    "nanoseconds": "'2024-01-01 00:00:00.000000001'::TIMESTAMP_NS",
    "nested": "{'my bit': ['101'::BIT], 'm': MAP{'k': 'x'::ENUM('x')}, 'pair': [uuid(), NULL]::UUID[2]}",
    "list": "['1'::JSON]",
}
FIRST = Pattern.begin("a").where("i = 1")


def relation(columns: dict[str, str]) -> Any:
    """Three events with these columns in a database of their own."""
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    at = "TIMESTAMP '2024-01-01' + to_seconds(i) AS at"
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE events AS SELECT i, {at}, {listed} FROM range(3) t(i)")
    return connection.table("events")


def types_of(rows: Any) -> dict[str, str]:
    return {name: str(type_) for name, type_ in zip(rows.columns, rows.types, strict=True)}


def test_rows_of_events() -> None:
    """Rows of events have the columns as they were."""
    events = relation(TYPES)
    rows = detect(events, FIRST, time="at", rows_per="event").select(*TYPES)
    assert types_of(rows) == {name: type_ for name, type_ in types_of(events).items() if name in TYPES}
    assert rows.fetchall() == events.select(*TYPES).fetchall()[1:2]


@pytest.mark.parametrize("name", ["bits", "kind", "id", "json", "huge", "clock"])
def test_keys_and_measures(name: str) -> None:
    """A key, and a measure that is just a column, have its type; conditions read the value as text."""
    events = relation({name: TYPES[name]})
    pattern = Pattern.begin("a").where(f"i = 1 AND {name} IS NOT NULL")
    measures = {} if name == "clock" else {"m": f"a.{name}"}  # a TIME is no measure
    rows = detect(events, pattern, time="at", key=name, measures=measures)
    there = types_of(rows)
    assert {there[column] for column in (name, *measures)} == {types_of(events)[name]}
    assert rows.select(name).fetchall() == events.select(name).fetchall()[1:2]
    assert rows.set_alias("found").join(events.set_alias("given"), name).fetchall()


def test_matches_unnested() -> None:
    """`match_events` keeps the types of the key."""
    rows = match_events(detect(relation({"id": TYPES["id"]}), FIRST, time="at", key="id"))
    assert types_of(rows)["id"] == "UUID"


def test_unions_are_refused() -> None:
    """A column of a type that cannot be used is named; others can be chosen."""
    events = relation({"u": "union_value(num := 1)", "us": "[union_value(num := 1)]"})
    with pytest.raises(SchemaError) as caught:
        detect(events, FIRST, time="at")
    assert str(caught.value).splitlines() == [
        f"column {name!r} of the events is of DuckDB's type {type_}, which cannot be used. Leave it out with "
        f"columns=[…], or take a member of it, as in union_extract({name}, 'member')"
        for name, type_ in (("u", "UNION(num INTEGER)"), ("us", "UNION(num INTEGER)[]"))
    ]
    assert detect(events, FIRST, time="at", columns=["i"]).select("a").fetchall() == [({"i": 1},)]

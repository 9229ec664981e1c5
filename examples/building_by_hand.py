"""The question of examples/building.py by hand: lists of points in place of knowledge, and all of it in SQL."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from examples.building_model import DAMPER, TEMPERATURE, Building

from cepheid import Pattern, Skip


def rooms_of_points(building: Building) -> pa.Table:
    """The temperature sensors and commands of dampers, each with the rooms that it concerns, and their air handler."""
    names = building.box_names
    rows = [
        {"point": f"{thing}.{kind}", "kind": kind, "room": room.name, "air_handler": f"ahu-{name.partition('-')[0]}"}
        for room in building.rooms
        for name in [names[room.box]]
        for thing, kind in ((room.name, TEMPERATURE), (f"vav-{name}", DAMPER))
    ]
    return pa.Table.from_pylist(rows)


def with_rooms_by_hand(readings: pa.Table, building: Building) -> pa.Table:
    """The readings of these points with their rooms."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("readings", readings)
        database.register("rooms", rooms_of_points(building).select(["point", "room"]))
        return database.sql("SELECT readings.*, room FROM readings JOIN rooms USING (point)").to_arrow_table()


def overheating_by_hand(building: Building, air_handler: str) -> Pattern:
    """The pattern with lists of points."""
    points = rooms_of_points(building).to_pylist()

    def among(kind: str, handlers: set[str]) -> str:
        names = {row["point"] for row in points if row["kind"] == kind and row["air_handler"] in handlers}
        return f"point IN ({', '.join(map(repr, sorted(names)))})"

    everywhere = {row["air_handler"] for row in points}
    start = Pattern.begin("start", name="overheating").where(among(TEMPERATURE, {air_handler}))
    closed = Pattern.begin("closed").where(among(DAMPER, everywhere)).where("value = 0")
    warmer = closed.one_or_more().consecutive().next("warmer").where(among(TEMPERATURE, everywhere))
    warmer = warmer.where("value > coalesce(last(warmer.value), start.value)")
    return start.next(warmer).times_or_more(6).consecutive().longest().skip(Skip.past_last_event())


def overheating_in_sql(readings: pa.Table, building: Building, air_handler: str) -> list[tuple[object, ...]]:
    """The rooms with the begin and end of each rise, in order: for each temperature, whether it is higher than the one
    before, with a closed damper and no open one in between; then the stretches of at least six such temperatures.
    """
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("readings", readings)
        database.register("rooms", rooms_of_points(building))
        return database.execute(_SQL, [air_handler]).fetchall()


_SQL = f"""
WITH events AS (
    SELECT room, "at", value, kind = '{TEMPERATURE}' AS is_temperature, kind = '{DAMPER}' AND value = 0 AS is_closed,
        kind = '{DAMPER}' AND value > 0 AS is_open
    FROM readings JOIN rooms USING (point) WHERE air_handler = ?),
counted AS (
    SELECT *, count(*) FILTER (is_closed) OVER by_time AS closed, count(*) FILTER (is_open) OVER by_time AS open
    FROM events WINDOW by_time AS (PARTITION BY room ORDER BY "at")),
compared AS (
    SELECT *, value > lag(value) OVER by_time AND closed > lag(closed) OVER by_time AND open = lag(open) OVER by_time
        AS rises
    FROM counted WHERE is_temperature WINDOW by_time AS (PARTITION BY room ORDER BY "at")),
stretches AS (
    SELECT *, count(*) FILTER (rises IS NOT TRUE) OVER (PARTITION BY room ORDER BY "at") AS stretch FROM compared)
SELECT room, min("at"), max("at") FROM stretches GROUP BY room, stretch HAVING count(*) > 6 ORDER BY ALL
"""

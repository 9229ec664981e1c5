"""`cepheid demo-stream`: shows delays that propagate, as they happen."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console

from cepheid.cli.stream_view import View
from cepheid.demo.flights import FLIGHT_COLUMNS
from cepheid.demo.pattern import LATE_CHAIN
from cepheid.demo.replay import Replay, departures_in_order
from cepheid.demo.timeline import Flight, clock, label, local, route
from cepheid.detect import detect
from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATENESS = "15 minutes"


def run_demo_stream(console: Console, *, speed: float, days: int) -> int:
    """Replays the departures of the first days of 2013 at `speed` times real time. Prints each late chain when it is
    certain, and returns the number of chains. If a Spark session is already active, it is used and left running.
    """
    departures = departures_in_order(days)
    # Each partition is a state store with a commit in every micro-batch.
    spark = local_session("cepheid demo", settings={"spark.sql.shuffle.partitions": str(os.cpu_count() or 1)})
    with TemporaryDirectory() as name:
        folder = Path(name)
        replay = Replay(departures, folder / "departures", speed)
        console.print(
            f"{departures.num_rows:,} departures of {days} days, {speed:,.0f} times as fast: it takes "
            f"{replay.lasts.total_seconds():.0f} seconds. Ctrl-C ends it.",
            highlight=False,
        )
        with replay:
            return _follow(_departures(spark, departures, folder / "departures"), replay, folder, console)


def _departures(spark: SparkSession, departures: Any, folder: Path) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.readStream.schema(from_arrow_schema(departures.schema)).parquet(str(folder))


def _follow(events: DataFrame, replay: Replay, folder: Path, console: Console) -> int:
    chains = detect(
        events, LATE_CHAIN, key="tailnum", time="departed_at", columns=list(FLIGHT_COLUMNS), lateness=LATENESS
    )
    view = View(LATE_CHAIN.name, console)

    def show(rows: DataFrame, _: int) -> None:
        for chain in rows.orderBy("detected_at", "tailnum").toArrow().to_pylist():
            console.print(_words(chain), highlight=False, soft_wrap=True, markup=False)

    query = chains.writeStream.foreachBatch(show).option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        with view.shown():
            while not replay.is_over:
                query.awaitTermination(1)
                view.follow(query)
            query.processAllAvailable()
            view.follow(query)
    except KeyboardInterrupt:
        pass  # the output says that Ctrl-C ends it
    finally:
        query.stop()
    console.print(view.summary(), highlight=False)
    return view.figures.matches


def _words(chain: dict[str, Any]) -> str:
    """One line with the aircraft, the day, and each flight with its minutes of delay."""
    events = (chain["late"], *chain["legs"])
    flights = [Flight(**{column: event[column] for column in FLIGHT_COLUMNS}) for event in events]
    legs = ", ".join(f"{label(one)} {clock(one.departed_at)} {route(one)} {one.dep_delay:+d}" for one in flights)
    return f"{chain['tailnum']:<7} {local(flights[0].departed_at):%Y-%m-%d}  {legs}"

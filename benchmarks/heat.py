"""One hot key on Spark, and the tasks of an aggregate and of a pattern.

Spark aggregates before the shuffle, so that each task sends at most one row a key. A pattern needs every event of a key
in one place.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.request import urlopen

from measuring import machine, print_table, rows_wanted
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid import Pattern, detect
from cepheid.hosts.spark.session import local_session

ROWS, KEYS, PARTITIONS = 1_000_000, 20_000, 8
RISE = (
    Pattern.begin("low").where("price < 0.02").followed_by("high").where("price > low.price * 40").within("20 seconds")
)


def events_of(session: SparkSession, rows: int, hot: float) -> DataFrame:
    """Events of which this share has one key, and the others one of many."""
    user = F.when(F.rand(1) < hot, F.lit("hot")).otherwise(F.concat(F.lit("u"), (F.rand(2) * KEYS).cast("int")))
    at = F.timestamp_millis(F.col("id") + 1_700_000_000_000)
    return session.range(0, rows, 1, PARTITIONS).select(user.alias("user"), at.alias("at"), F.rand(3).alias("price"))


def tasks_after_shuffle(session: SparkSession, query: DataFrame) -> list[dict[str, Any]]:
    """The tasks that read what the query shuffled, as Spark's REST interface reports them."""
    context = session.sparkContext
    base = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    before = {stage["stageId"] for stage in _read(base)}
    query.write.format("noop").mode("overwrite").save()
    found = [stage for stage in _read(base) if stage["stageId"] not in before and stage["shuffleReadRecords"]]
    (stage,) = found
    return list(_read(f"{base}/{stage['stageId']}/{stage['attemptId']}/taskList?length=1000"))


def _read(url: str) -> Any:
    with urlopen(url) as answer:  # noqa: S310 - Spark's own interface on this machine
        return json.load(answer)


def max_over_mean(values: list[int]) -> float:
    return max(values) * len(values) / sum(values)


def main() -> None:
    settings = {"spark.ui.enabled": "true", "spark.sql.adaptive.enabled": "false"}
    settings |= {"spark.sql.shuffle.partitions": str(PARTITIONS)}
    session = local_session("heat", time_zone="UTC", settings=settings)
    rows, lines = rows_wanted("One hot key on Spark.", default=ROWS), []
    for hot in (0.0, 0.9):
        events = events_of(session, rows, hot).cache()
        events.count()
        queries = {
            "count and sum of each key": events.groupBy("user").agg(F.count("*"), F.sum("price")),
            "pattern of two stages": detect(events, RISE, key="user", time="at", columns=["price"]),
        }
        for name, query in queries.items():
            tasks_after_shuffle(session, query)  # starts workers, compiles
            tasks = tasks_after_shuffle(session, query)
            read = [task["taskMetrics"]["shuffleReadMetrics"]["recordsRead"] for task in tasks]
            times = [task["taskMetrics"]["executorRunTime"] for task in tasks]
            lines.append((name, f"{hot:.0%}", sum(read), max_over_mean(read), max_over_mean(times)))
        events.unpersist()
    session.stop()
    head = ("query", "events with one key", "rows shuffled", "rows of a task: max ÷ mean", "time of a task: max ÷ mean")
    print(machine())
    print_table(f"One hot key among {rows:,} events, {PARTITIONS} tasks", head, lines)


if __name__ == "__main__":
    main()

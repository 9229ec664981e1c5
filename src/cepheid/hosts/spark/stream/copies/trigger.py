"""The interval of a running query's trigger, asked of Spark."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import SparkSession


def trigger_interval(spark: SparkSession, query: str) -> timedelta | None:
    """The interval at which the query with this id begins its micro-batches. None: it has no such trigger or none above
    zero, it does not run in this process, or the session is one of Spark Connect, which does not say.
    """
    java = getattr(spark, "_jsparkSession", None)
    if java is None:
        return None
    # Spark knows the queries of all sessions of this process here; `spark.streams` has only those of one.
    running = java.sharedState().activeStreamingQueries().values()
    trigger = next((one.trigger() for one in running if one.id().toString() == query), None)
    if trigger is None or trigger.getClass().getSimpleName() != "ProcessingTimeTrigger":
        return None
    return timedelta(milliseconds=trigger.intervalMs()) or None

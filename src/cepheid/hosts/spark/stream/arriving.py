"""Streams whose events have the time of their arrival.

It is the time of their micro-batch, which Spark records before the micro-batch runs, and gives to it again if it is
repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.errors import SchemaError
from cepheid.requests.arrival import ARRIVED, check_names
from cepheid.requests.request import Request


def arriving(events: DataFrame, request: Request) -> tuple[DataFrame, Request]:
    """The events with a column of their times of arrival, and the request for them.

    Raises:
        SchemaError: the stream cannot have them; the message has all faults.
    """
    check_names(events.columns)
    if faults := [*_faults(request)]:
        raise SchemaError("\n".join(faults))
    return events.withColumn(ARRIVED, F.current_timestamp()), replace(request, lateness=timedelta(0))


def _faults(request: Request) -> Iterator[str]:
    if not request.sequence:
        yield (
            "sequence: with time=ARRIVAL all events of a micro-batch have its time, and a stream has no order of its "
            "own. Name a column that orders them, such as Kafka's offset"
        )
    if request.lateness is not None:
        yield "lateness: with time=ARRIVAL no event is late; leave it out"
    if request.standbys:
        yield "standbys: with time=ARRIVAL the events of a key cannot be divided by time; leave it out"

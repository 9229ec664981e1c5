"""Reads events from records of text, such as Kafka's messages. A record that cannot be read is reported: it does not
become an event of NULLs.
"""

from __future__ import annotations

from typing import cast
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import StringType, StructType

from cepheid.hosts.spark.lift import named
from cepheid.hosts.spark.stream.progress import MALFORMED
from cepheid.requests.request import Nulls

_TEXT = "_malformed"
READER_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _TEXT}
"""Spark's options with which a reader that has the columns of `with_malformed` reports malformed records."""

_SHOWN = 100
_ADVICE = ". Correct it where it is written, or leave such records out with nulls='drop', which counts them"


def with_malformed(columns: StructType) -> StructType:
    """The columns, and one more for the text of a malformed record."""
    return StructType([*columns.fields]).add(_TEXT, StringType())


def json_events(messages: DataFrame, columns: StructType | str, nulls: Nulls = "error") -> DataFrame:
    """The events in Kafka's messages: JSON objects with these columns (a text is Spark's DDL).

    A message that is not such an object, or has no value, fails the query; with nulls="drop" it is left out and counted
    in `Progress.malformed`. A column that an object lacks is NULL. Spark ignores any text after the object.
    """
    types = cast("StructType", StructType.fromDDL(columns)) if isinstance(columns, str) else columns
    text = F.col("value").cast("string")
    event = F.from_json(text, with_malformed(types), READER_OPTIONS).alias("event")
    place = F.concat(
        F.lit("the message of offset "),
        *(F.col("offset"), F.lit(" in partition "), F.col("partition"), F.lit(" of topic "), F.col("topic")),
    )
    malformed = named("event").isNull() | named("event")[_TEXT].isNotNull()  # NULL: there is no text, or it is blank
    read = messages.select(event, place.alias("place"), text.alias("text"))
    return _well_formed(read, malformed, F.col("place"), F.col("text"), nulls).select("event.*").drop(_TEXT)


def file_events(records: DataFrame, nulls: Nulls) -> DataFrame:
    """The events in files of JSON or CSV, read with READER_OPTIONS and the columns of `with_malformed`. Malformed
    records are treated as in `json_events`.
    """
    place = F.concat(F.lit("a record of "), F.col("_metadata.file_path"))
    return _well_formed(records, named(_TEXT).isNotNull(), place, named(_TEXT), nulls).drop(_TEXT)


def _well_formed(records: DataFrame, malformed: Column, place: Column, text: Column, nulls: Nulls) -> DataFrame:
    """The well-formed records. Malformed ones are counted, under a name that no other source of the query has."""
    count = F.count(F.when(malformed, 1)).alias("records")
    counted = records.observe(f"{MALFORMED}.{uuid4().hex}", count)
    if nulls == "drop":
        return counted.where(~malformed)
    shown = F.coalesce(
        F.concat(F.lit(": '"), F.regexp_replace(F.substring(text, 1, _SHOWN), r"\s+", " "), F.lit("'")),
        F.lit(": it has no value"),
    )
    message = F.concat(place, F.lit(" cannot be read as an event"), shown, F.lit(_ADVICE))
    return counted.where(F.when(malformed, F.raise_error(message).cast("boolean")).otherwise(F.lit(True)))  # noqa: FBT003

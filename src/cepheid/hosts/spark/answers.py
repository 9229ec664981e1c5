"""Adds a column of answers to a DataFrame, of a batch or a stream: a join with the answers, which are broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from cepheid.errors import SchemaError
from cepheid.hosts.spark.engine import arrow_schema
from cepheid.hosts.spark.lift import named
from cepheid.knowledge.column import AnswerColumn
from cepheid.plan.semantics.answers import (
    MOST_VALUES,
    Answers,
    answers,
    checked_name,
    tested_columns,
    too_many,
    unknown_values,
)
from cepheid.requests.request import repeated_names


def with_answers_on_spark(events: DataFrame, column: AnswerColumn, name: str | None) -> DataFrame:
    """The events with the column of answers as the last one. Only if the filter must be asked for values of the events
    does this run a query.

    Raises:
        SchemaError, KnowledgeError: as `cepheid.add_column`.
    """
    if faults := repeated_names(events.columns):
        raise SchemaError("\n".join(faults))
    types = arrow_schema(events.schema)
    name = checked_name(column, types, name)
    found = answers(column, types, _distinct(events, types, tested_columns(column)))
    known = _frame(events, found)
    here = [named(one) for one in found.keys.column_names]
    equal = reduce(Column.__and__, (one == known[there] for one, there in zip(here, known.columns, strict=False)))
    joined = events.join(F.broadcast(known), equal, "left")
    return joined.select(*map(named, events.columns), known[_ANSWER].alias(name))


_ANSWER = "cepheid answer"
"""No column of events has such a name: the names of columns in joins must differ."""


def _frame(events: DataFrame, found: Answers) -> DataFrame:
    """The answers as a DataFrame, after the columns that they depend on, in the types that the events have."""
    keys = found.keys.column_names
    names = [*(f"{_ANSWER} {number}" for number in range(len(keys))), _ANSWER]
    types = [events.schema[one].dataType for one in keys]
    types.append(from_arrow_type(found.values.type, prefer_timestamp_ntz=True))
    table = pa.table([*found.keys.columns, found.values], names=names)
    schema = StructType([StructField(one, type_) for one, type_ in zip(names, types, strict=True)])
    return events.sparkSession.createDataFrame(table, schema)


def _distinct(events: DataFrame, types: pa.Schema, columns: Sequence[str]) -> pa.Table | None:
    """The distinct values of columns, by a query; None if there are no columns."""
    if not columns:
        return None
    if events.isStreaming:
        raise SchemaError(unknown_values(columns))
    known = reduce(Column.__and__, [named(one).isNotNull() for one in columns])
    chosen = events.where(known).select(*map(named, columns)).distinct().limit(MOST_VALUES + 1)
    found = chosen.toArrow().cast(pa.schema([types.field(one) for one in columns]))
    if len(found) > MOST_VALUES:
        raise SchemaError(too_many(columns))
    return found

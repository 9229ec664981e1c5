"""Answers to questions that have no SQL, as columns of a DataFrame of a batch or a stream.

A worker asks each question once for each distinct value, and retains the answers. So no query runs beforehand, and a
stream may bring new values.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from cepheid.hosts.spark.engine import quoted
from cepheid.knowledge.question import Question


def with_questions(events: DataFrame, questions: Sequence[Question]) -> DataFrame:
    """The events with the columns of answers. This starts no job."""
    for one in questions:
        events = events.withColumn(one.name, _asked(one)(*(F.expr(quoted(name)) for name in one.columns)))
    return events


def _asked(question: Question):  # type: ignore[no-untyped-def]
    """The question as a function of Spark. It is nested, and so pickled by value: where cepheid is not installed, it
    answers nothing, and the function that looks for matches says so.
    """
    packed = pickle.dumps(question)

    def ask(*columns: pa.Array) -> pa.Array:
        try:
            from cepheid.hosts.spark.asked import answers
        except ImportError:
            return pa.nulls(len(columns[0]), pa.bool_())
        return answers(packed, columns)

    # The types of arrow_udf ask for the kind of function, which hints give, too; with both it warns.
    return arrow_udf(ask, BooleanType())  # type: ignore[call-overload]


def answers(packed: bytes, columns: Sequence[pa.Array]) -> pa.Array:
    """The answers of a question, in a worker."""
    question = _unpacked(packed)
    return question.answers(dict(zip(question.columns, columns, strict=True)))


@lru_cache(maxsize=64)
def _unpacked(packed: bytes) -> Question:
    """The question. It is the same object for all calls in a worker, so that it retains its answers."""
    question: Question = pickle.loads(packed)  # noqa: S301 - from the driver, as the function itself is
    return question

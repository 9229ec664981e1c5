"""Failures of Spark that the events cause, as Cepheid's own errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException, StreamingQueryException

from cepheid.errors import ConditionError, EventError
from cepheid.hosts.spark.places import place_of

_RAISED = "P0001"
"""The SQL state of raise_error, by which the hosts and their workers report failures."""

_DATA_EXCEPTION = "22"
"""The class of SQL states for values that an operation fails on: division by zero, overflow, a cast that fails."""

_BEFORE_REASON = "terminated with exception: "
"""The text before the reason why a streaming query failed."""

_WITHIN_SINK = re.compile(r"^\[FOREACH_BATCH_USER_FUNCTION_ERROR\].*?(?=\[[A-Z0-9_.]+\] )", re.DOTALL)
"""What Spark puts before the reason where the function of `foreachBatch` computes the rows."""

_BYPASS = re.compile(r' (If necessary s|S)et "spark\.sql\.ansi\.enabled" to "false" to bypass this error\.')
"""Spark's advice, which would give other matches than in process."""


@contextmanager
def event_failures() -> Iterator[None]:
    """Wraps an action on the result of `detect` on Spark, or waiting for a query: what the events cause is raised as in
    process, with the message alone. Other exceptions stay as they are.

    Raises:
        ConditionError: Spark cannot compute a condition or a measure for an event, as in a division by zero. The
            message names it and its stage.
        EventError: an event has no key or no time, a worker could not go on, or Spark cannot compute what the events
            come from.
    """
    try:
        yield
    except PySparkException as error:
        state = _state(error)
        if state != _RAISED and not state.startswith(_DATA_EXCEPTION):
            raise
        kind = EventError if place_of(_reason(error)) is None else ConditionError
        raise kind(failure_message(error)) from None


def failure_message(error: PySparkException) -> str:
    """The message without the error class, the SQL state and the stack, and the condition or measure that failed."""
    raised = (error.getMessageParameters() or {}).get("errorMessage")
    if raised is not None:
        return raised
    text = _reason(error).strip()
    message = re.split(r"\s*SQLSTATE:|\n", re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text))[0]
    message = _BYPASS.sub("", message)
    place = place_of(text)
    return message if place is None else f"{message.rstrip('.')}, in {place}"


def _state(error: PySparkException) -> str:
    if isinstance(error, StreamingQueryException):
        state = re.search(r"SQLSTATE: (\w{5})", _reason(error))
        return state[1] if state else ""
    return error.getSqlState() or ""


def _reason(error: PySparkException) -> str:
    text = str(error)
    if isinstance(error, StreamingQueryException) and _BEFORE_REASON in text:
        text = text.partition(_BEFORE_REASON)[2]
        within = _WITHIN_SINK.search(text)
        return text if within is None else text[within.end() :]
    return text

"""Failures of Spark that the events cause, as Cepheid's own errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException, StreamingQueryException

from cepheid.errors import EventError

_RAISED = "P0001"
"""The SQL state of raise_error, by which the hosts and their workers report failures."""

_DATA_EXCEPTION = "22"
"""The class of SQL states for values that an operation fails on: division by zero, overflow, a cast that fails."""

_BEFORE_REASON = "terminated with exception: "
"""The text before the reason why a streaming query failed."""


@contextmanager
def event_failures() -> Iterator[None]:
    """Wraps an action on the result of `detect`, or waiting for a query. A failure that the events cause becomes an
    EventError with only the message. Other exceptions stay as they are.
    """
    try:
        yield
    except PySparkException as error:
        state = _state(error)
        if state != _RAISED and not state.startswith(_DATA_EXCEPTION):
            raise
        raise EventError(failure_message(error)) from None


def failure_message(error: PySparkException) -> str:
    """The message without the error class, the SQL state, the place in our generated SQL and the stack."""
    raised = (error.getMessageParameters() or {}).get("errorMessage")
    if raised is not None:
        return raised
    message = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", _reason(error).strip())
    return re.split(r"\s*SQLSTATE:|\n", message)[0]


def _state(error: PySparkException) -> str:
    if isinstance(error, StreamingQueryException):
        state = re.search(r"SQLSTATE: (\w{5})", _reason(error))
        return state[1] if state else ""
    return error.getSqlState() or ""


def _reason(error: PySparkException) -> str:
    text = str(error)
    if isinstance(error, StreamingQueryException) and _BEFORE_REASON in text:
        return text.partition(_BEFORE_REASON)[2]
    return text

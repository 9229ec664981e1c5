"""Failures of Spark that the events are the reason for, as Cepheid's own errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from cepheid.errors import EventError

_RAISED = "P0001"
"""The SQL state of raise_error, which the hosts and their workers tell with."""

_DATA_EXCEPTION = "22"
"""The class of SQL states for values that an operation fails on: division by zero, overflow, a cast that fails."""


@contextmanager
def event_failures() -> Iterator[None]:
    """Around an action on what `detect` gave back: where events are the reason of a failure, it is an EventError with
    the message alone; other exceptions pass.
    """
    try:
        yield
    except PySparkException as error:
        state = error.getSqlState() or ""
        if state != _RAISED and not state.startswith(_DATA_EXCEPTION):
            raise
        raise EventError(_message(error)) from None


def _message(error: PySparkException) -> str:
    """Without the error class, the SQL state, the place in our generated SQL and the stack."""
    told = (error.getMessageParameters() or {}).get("errorMessage")
    if told is not None:
        return told
    message = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", str(error).strip())
    return re.split(r"\s*SQLSTATE:|\n", message)[0]

"""What travels to Spark's workers: the plan, and the functions that Spark calls there."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType

from cepheid.errors import PatternError, Problem, in_pattern
from cepheid.matchers.protocols import PatternRunner
from cepheid.plan.plan_set import PatternPlan, PlanSet
from cepheid.requests.request import ERROR

IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
"""The argument that says to PySpark that times are in UTC; versions before 4.3 assume it."""


def packed(sent: PlanSet[Any] | PatternRunner) -> bytes:
    """Plans, or a pattern's runner, pickled for the workers; their functions are pickled as any user's functions are.

    Raises:
        PatternError: a function cannot be pickled.
    """
    if isinstance(sent, PlanSet):
        for plan in sent.each:
            with in_pattern(plan.pattern.name, named=sent.named):
                _check(plan)
        functions = sent.functions
    else:
        _check(sent.plan)
        functions = sent.plan.functions
    if not functions:
        return pickle.dumps(sent)
    packed_: bytes = cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
    return packed_


def _check(plan: PatternPlan) -> None:
    for where, function in plan.placed_functions:
        try:
            cloudpickle.dumps(function.call)  # type: ignore[no-untyped-call]
        except Exception as error:
            message = f"function {function.name} cannot be sent to Spark's workers: {type(error).__name__}: {error}"
            hint = "Let it use nothing that belongs to this process alone, such as connections, locks and Spark itself."
            raise PatternError(Problem(message, where, hint=hint)) from error


def mapped(
    function: str, task: tuple[object, ...], rows: StructType
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark calls in a worker: it calls Cepheid's `function` with the batches and the task. If that
    cannot be called, the row's `_error` says why.

    It is a function within a function, so it is pickled by value and can report the problem even where cepheid is not
    installed.
    """
    expected, error_column = _version(), ERROR
    schema = to_arrow_schema(rows, **IN_UTC)
    module, _, name = function.rpartition(".")

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys
        from importlib import import_module
        from importlib.metadata import PackageNotFoundError, version

        try:
            found: str | None = version("cepheid")
        except PackageNotFoundError:
            found = None  # sent as a file or found on PYTHONPATH: its only version is that of its source
        fault = "" if None in (found, expected) or found == expected else f"has cepheid {found}, not {expected}"
        try:
            worker = None if fault else import_module(module)
        except ImportError as error:
            worker, fault = None, f"cannot import cepheid ({error})"
        if worker is not None:
            yield from getattr(worker, name)(batches, task)
            return
        wanted = f"cepheid=={expected}" if expected else "cepheid"
        advice = f"Install {wanted} for the workers' Python, or set PYSPARK_PYTHON to one that has it"
        message = f"a Spark worker ({sys.executable}) {fault}. {advice}"
        yield pa.RecordBatch.from_pylist([{error_column: message}], schema=schema)

    return find


def _version() -> str | None:
    try:
        return version("cepheid")
    except PackageNotFoundError:
        return None

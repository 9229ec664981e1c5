"""What is sent to Spark's workers: plans, and the functions that Spark calls there."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType

from cepheid.errors import PatternError, Problem, in_pattern
from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.question import Question
from cepheid.lang.expression import Literal
from cepheid.matchers.protocols import ShardMatcher, ShardRunner
from cepheid.plan.lifted import Lifted
from cepheid.plan.plan_set import PatternPlan, PlanSet
from cepheid.plan.semantics.explain import Answer
from cepheid.requests.request import ERROR

IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
"""The argument with which PySpark takes times as UTC; versions before 4.3 always do so."""


def packed(sent: PlanSet[Any] | ShardRunner[ShardMatcher]) -> bytes:
    """Plans, or the runner of shards, pickled for the workers. Their functions are pickled as any user's functions are.

    Raises:
        PatternError: a function cannot be pickled.
    """
    plans = sent.each if isinstance(sent, PlanSet) else sent.plans
    named = isinstance(sent, PlanSet) and sent.named
    for plan in plans:
        with in_pattern(plan.pattern.name, named=named):
            _check(plan)
    if any(plan.functions for plan in plans):
        packed_: bytes = cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
        return packed_
    stored = BytesIO()
    knows = any(getattr(plan, "semantics", None) is not None for plan in plans)
    _Pickler(stored, knows=knows).dump(sent)
    return stored.getvalue()


class _Pickler(pickle.Pickler):
    """Leaves out what workers do not need: lifted columns have only types there, and knowledge that SQL stands for is
    not asked. Both may be large.
    """

    def __init__(self, file: BytesIO, *, knows: bool) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._knows = knows

    def reducer_override(self, given: object) -> Any:
        match given:
            case Lifted() if len(given.sql) > _LONG:
                nothing = Literal(None, pa.null(), (0, 0))
                return Lifted, ("NULL", nothing, given.type)
            case Knowledge() if not self._knows:
                return _nothing, ()
            case Question():
                return _nothing, ()
            case Answer():
                return Answer, (given.filter, "")
        return NotImplemented


_LONG = 10_000
"""Longer SQL is left out."""


def _nothing() -> None:
    """What stands for knowledge that is not needed, and for questions, which are answered before."""


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
    """The function that Spark calls in a worker. It calls Cepheid's `function` with the batches and the task. If it
    cannot do so, it returns one row whose `_error` says why.

    It is a nested function: these are pickled by value. So it can report the problem even where cepheid is not
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
            installed: str | None = version("cepheid")
        except PackageNotFoundError:
            installed = None  # sent as a file or on PYTHONPATH: then the package has no version
        same = None in (installed, expected) or installed == expected
        fault = "" if same else f"has cepheid {installed}, not {expected}"
        try:
            modules = [] if fault else [*map(import_module, (module, "cepheid.hosts.spark.collection"))]
        except ImportError as error:
            modules, fault = [], f"cannot import cepheid ({error})"
        if modules:
            worker, collection = modules
            collection.freeze_what_stays()
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

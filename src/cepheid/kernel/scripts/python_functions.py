"""Functions as conditions: what they see of events, and what they may return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from reprlib import repr as short
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np

from cepheid.errors import did_you_mean
from cepheid.lang.function import Function
from cepheid.plan.conditions.script import FunctionValue

Value: TypeAlias = Any
"""bool, int, float or str; None is NULL."""


class HasValues(Protocol):
    @property
    def values(self) -> tuple[Value, ...]: ...


Taken: TypeAlias = Sequence[tuple[int, HasValues]]
"""The events of a partial match in order, each with its stage."""


class FunctionFailed(Exception):
    """A function raised an exception, which is the cause of this one, or did not return True, False or None."""


class UnknownName(KeyError):
    """A KeyError whose text is its message; KeyError itself would quote it."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Columns(dict[str, Any]):
    def __missing__(self, name: object) -> Any:
        raise UnknownName(f"no column named {name!r}. {did_you_mean(str(name), list(self))}")


class SeenEvent:
    """An event as functions see it. It is the last one of the event's values that scripts read."""

    __slots__ = ("columns", "results")

    def __init__(self, columns: Iterable[tuple[str, Any]]) -> None:
        self.columns: Mapping[str, Any] = MappingProxyType(_Columns(columns))
        self.results: dict[int, bool | None] = {}
        """The results of functions that look at the event alone, by the functions' identity."""


class Matched(Mapping[str, tuple[Mapping[str, Any], ...]]):
    """The events of a partial match by stage, in order; most stages have none."""

    __slots__ = ("_stages", "_taken")

    def __init__(self, stages: tuple[str, ...], taken: Taken) -> None:
        self._stages = stages
        self._taken = taken

    def __getitem__(self, name: str) -> tuple[Mapping[str, Any], ...]:
        if name not in self._stages:
            raise UnknownName(f"no stage named {name!r}. {did_you_mean(str(name), self._stages)}")
        stage = self._stages.index(name)
        return tuple(event.values[-1].columns for taking, event in self._taken if taking == stage)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)


def call_function(condition: FunctionValue, taken: Taken, current: Sequence[Value]) -> bool | None:
    """Calls the function and returns its result. A function that looks at the event alone is called once per event.

    Raises:
        FunctionFailed: it raises, or does not return True, False or None.
    """
    function, event = condition.function, current[-1]
    if function.iterative:
        return _call(function, event.columns, Matched(condition.stages, taken))
    results: dict[int, bool | None] = event.results
    if id(function.call) not in results:
        results[id(function.call)] = _call(function, event.columns)
    return results[id(function.call)]


def _call(function: Function, *arguments: object) -> bool | None:
    try:
        result = function.call(*arguments)
    except Exception as error:
        raise FunctionFailed(f"function {function.name} raised {type(error).__name__}: {error}") from error
    if result is None or isinstance(result, bool):
        return result
    if isinstance(result, np.bool_):
        return bool(result)
    raise FunctionFailed(f"function {function.name} returned {short(result)}, not True, False or None")

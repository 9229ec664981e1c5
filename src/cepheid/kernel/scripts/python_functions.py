"""Functions as conditions: what they see of events, and what they return."""

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
    """A function raised the exception that is this one's cause, or returned what is no truth value."""


class UnknownName(KeyError):
    """Shown as it is written, which KeyError's own text is not."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Columns(dict[str, Any]):
    def __missing__(self, name: object) -> Any:
        raise UnknownName(f"no column named {name!r}. {did_you_mean(str(name), list(self))}")


class SeenEvent:
    """An event as functions see it. It is the last of the event's values for scripts."""

    __slots__ = ("answers", "columns")

    def __init__(self, columns: Iterable[tuple[str, Any]]) -> None:
        self.columns: Mapping[str, Any] = MappingProxyType(_Columns(columns))
        self.answers: dict[int, bool | None] = {}
        """The answers of functions that look at the event alone, by their identity."""


class Matched(Mapping[str, tuple[Mapping[str, Any], ...]]):
    """The events that a partial match has of each stage, in order; most stages have none."""

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


def ask(asked: FunctionValue, taken: Taken, current: Sequence[Value]) -> bool | None:
    """What the function returns; one that looks at the event alone is called once per event.

    Raises:
        FunctionFailed: it raises, or does not return True, False or None.
    """
    function, event = asked.function, current[-1]
    if function.iterative:
        return _said(function, event.columns, Matched(asked.stages, taken))
    answers: dict[int, bool | None] = event.answers
    if id(function.call) not in answers:
        answers[id(function.call)] = _said(function, event.columns)
    return answers[id(function.call)]


def _said(function: Function, *arguments: object) -> bool | None:
    try:
        said = function.call(*arguments)
    except Exception as error:
        raise FunctionFailed(f"function {function.name} raised {type(error).__name__}: {error}") from error
    if said is None or isinstance(said, bool):
        return said
    if isinstance(said, np.bool_):
        return bool(said)
    raise FunctionFailed(f"function {function.name} returned {short(said)}, not True, False or None")

"""Arguments that a public call does not have, or not by position. They are refused with advice: what to write in place
of an argument of an earlier version, which other call has the argument, or which ones there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from importlib import import_module
from inspect import CO_VARARGS, CO_VARKEYWORDS, unwrap
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from cepheid.errors import SchemaError, with_noun
from cepheid.lang.argument_advice import Advice, advice_for

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Call(NamedTuple):
    """A public call and the names of its arguments, without `self`."""

    name: str
    arguments: tuple[str, ...]
    by_position: int
    """How many of them, at the beginning, may be given without their names."""


_CALLS: dict[str, list[_Call]] = {}
"""The public calls of each module that is loaded."""
_WITH_CALLS = "detect", "intervals", "matcher", "plan.limits", "streams", "plotting.plot"
"""The modules with calls that a message may name, in this order. They are loaded only for a message."""
_HEAVY = "host", "testing"
"""Further ones, which take a second to load. A message names their calls only if the user has loaded them."""


def known_arguments(former: Mapping[str, Advice] | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function raises SchemaError if it is given an argument that it does not have, one twice, or too
    many without names, or if one that it needs is missing. `former` has the advice for arguments of earlier versions.
    """

    def refusing(function: Callable[P, R]) -> Callable[P, R]:
        inner = unwrap(function)
        assert isinstance(inner, FunctionType)
        code, owner = inner.__code__, inner.__qualname__.rpartition(".")[0]
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        has_self = bool(owner) and names[:1] == ("self",)
        call = _Call(inner.__qualname__.removesuffix(".__init__"), names[has_self:], code.co_argcount - has_self)
        _CALLS.setdefault(inner.__module__, []).append(call)
        known, most, needed = frozenset(names), code.co_argcount, _needed(inner) & {*call.arguments}
        any_name, any_number = bool(code.co_flags & CO_VARKEYWORDS), bool(code.co_flags & CO_VARARGS)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            by_position = names[: len(args)]
            if (len(args) > most and not any_number) or not (any_name or kwargs.keys() <= known):
                count = len(args) - has_self
                raise SchemaError("\n".join(dict.fromkeys(_faults(call, former or {}, count, kwargs))))
            if not needed <= kwargs.keys() | set(by_position) or not kwargs.keys().isdisjoint(by_position[:most]):
                raise SchemaError("\n".join(_miscounted(call, needed, by_position[:most], kwargs)))
            return function(*args, **kwargs)

        return checked

    return refusing


def known_fields(made: type[T]) -> type[T]:
    """A decorator of classes: the same for what makes their values."""
    made.__init__ = known_arguments()(made.__init__)  # type: ignore[method-assign]
    return made


def known_calls(made: type[T]) -> type[T]:
    """A decorator of classes: the same for their public methods."""
    for name, member in [*vars(made).items()]:
        if name.startswith("_"):
            continue
        if isinstance(member, staticmethod) and not hasattr(member.__func__, "__wrapped__"):
            setattr(made, name, staticmethod(known_arguments()(member.__func__)))
        elif isinstance(member, FunctionType) and not hasattr(member, "__wrapped__"):
            setattr(made, name, known_arguments()(member))
    return made


def _needed(function: FunctionType) -> frozenset[str]:
    """The arguments without a default."""
    code, defaults = function.__code__, function.__defaults__ or ()
    by_position, end = code.co_varnames[: code.co_argcount - len(defaults)], code.co_argcount + code.co_kwonlyargcount
    named = set(code.co_varnames[code.co_argcount : end]) - {*(function.__kwdefaults__ or ())}
    return frozenset((*by_position, *named))


def _miscounted(
    call: _Call, needed: frozenset[str], by_position: Sequence[str], given: Mapping[str, Any]
) -> Iterator[str]:
    """What is wrong with the number of values of each argument."""
    for name in by_position:
        if name in given:
            yield f"{name}: {call.name} was given it twice, with its name and without"
    if missing := [name for name in call.arguments if name in needed and name not in {*given, *by_position}]:
        verb = "is" if len(missing) == 1 else "are"
        yield f"{call.name} needs {', '.join(missing)}, which {verb} missing. It has {', '.join(call.arguments)}"


def _faults(call: _Call, former: Mapping[str, Advice], count: int, given: Mapping[str, Any]) -> Iterator[str]:
    if count > call.by_position:
        yield _too_many(call, count)
    for name in given:
        if name in former:
            yield f"{name}: {former[name](given)}"
        elif name not in call.arguments:
            advice = advice_for(name, given, call.name, call.arguments)
            yield f"{name}: {call.name} has no such argument{_elsewhere(name)}. {advice}"


def _too_many(call: _Call, count: int) -> str:
    if not call.arguments:
        return f"{call.name} takes no arguments, and was given {count}"
    by_position, named = call.arguments[: call.by_position], call.arguments[call.by_position :]
    takes = f"only {' and '.join(by_position)} can be given so" if by_position else "none can be given so"
    advice = f". Name the others: {', '.join(named)}" if named else ""
    return f"{call.name} was given {with_noun(count, 'argument')} without names; {takes}{advice}"


def _elsewhere(name: str) -> str:
    return next((f", but {call} has" for call, arguments in calls() if name in arguments), "")


def calls() -> Iterator[tuple[str, Sequence[str]]]:
    """The public calls, each with the names of its arguments."""
    for module in _WITH_CALLS:
        import_module(f"cepheid.{module}")
    for module in (*_WITH_CALLS, *_HEAVY):
        yield from ((call.name, call.arguments) for call in _CALLS.get(f"cepheid.{module}", ()))

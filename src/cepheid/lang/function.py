"""Functions as conditions: the arguments they may take, and the names that identify them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from cepheid.errors import PatternError, Problem

_NESTED = "<locals>."


@dataclass(frozen=True)
class Function:
    """A condition in Python."""

    call: Callable[..., object]
    name: str
    """Identifies the function in messages and when patterns are compared."""
    iterative: bool
    """Whether it also takes the events matched so far; it is then evaluated for each partial match."""


def make_function(call: Callable[..., object], name: str | None, where: str) -> Function:
    """The function named `name` or, if that is None, named as it was defined.

    Raises:
        PatternError: the function has no name, or does not take one or two arguments. `where` is the place that the
            message names.
    """
    known = _own_name(call) if name is None else name
    if not isinstance(known, str) or not known.strip():
        message = "a function needs a name, which identifies it when patterns are compared"
        given = f"got {_shown(call)}" if name is None else f"got name={name!r}"
        raise PatternError(
            Problem(f"{message}; {given}", where, hint='Define it with def, or write where(f, name="dearer").')
        )
    count = _arguments(call)
    if count not in (1, 2):
        message = f"function {known} must take the event alone, or the event and what has matched so far"
        hint = "Write def f(event) or def f(event, matched); give other parameters a default."
        raise PatternError(Problem(message, where, hint=hint))
    return Function(call, known, iterative=count == 2)


def _own_name(call: Callable[..., object]) -> str | None:
    """The function's name in its module, without enclosing functions; None for a lambda or an object without a name."""
    name = getattr(call, "__qualname__", None)
    if not isinstance(name, str) or name.endswith("<lambda>"):
        return None
    return name.rpartition(_NESTED)[2]


def _arguments(call: Callable[..., object]) -> int | None:
    """The number of arguments that the function is called with: those it requires, and one named `matched` even if it
    has a default. None if the signature is not known or a required argument cannot be given by position.
    """
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return None  # builtins do not always have a signature
    needed = [
        p
        for p in parameters
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and (p.default is p.empty or p.name == "matched")
    ]
    return None if any(p.kind is p.KEYWORD_ONLY for p in needed) else len(needed)


def _shown(call: Callable[..., object]) -> str:
    return "a lambda" if getattr(call, "__name__", "") == "<lambda>" else f"a {type(call).__name__}"

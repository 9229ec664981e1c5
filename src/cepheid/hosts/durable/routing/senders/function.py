"""Functions in Python as targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any

from cepheid.errors import SchemaError
from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.subscription import Letter


def function_named(text: str) -> Callable[[Letter], Any]:
    """The function `module:function`.

    Raises:
        SchemaError: it cannot be imported, or is no function.
    """
    module, _, name = text.partition(":")
    try:
        function = attrgetter(name)(import_module(module))
    except Exception as error:  # whatever the module raises while it is imported
        raise SchemaError(f"{text} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise SchemaError(f"{text} is no function")
    checked: Callable[[Letter], Any] = function
    return checked


class FunctionSender:
    """Calls a function with each letter. What it raises is the problem, and the letter is tried again."""

    at_once = 1
    gives_up = True

    def __init__(self, function: Callable[[Letter], Any]) -> None:
        self._function = function

    def send(self, letters: Sequence[Letter]) -> None:
        for letter in letters:
            try:
                self._function(letter)
            except Exception as error:
                raise Undelivered(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        pass

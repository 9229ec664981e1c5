"""The commands of `cepheid` by name. Each is imported when it is used, as `cepheid --help` needs only a line of it."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, NamedTuple

import typer

from cepheid.cli.failure import EXIT_CODES


class Place(NamedTuple):
    """Where a command is."""

    module: str
    name: str
    """That of the function, or of the group of commands."""
    line: str
    """The first sentence of its help."""


COMMANDS: dict[str, Place] = {
    "detect": Place("cepheid.cli.detect", "detect", "Find the matches of a pattern in events from files."),
    "check": Place(
        "cepheid.cli.check",
        "check",
        "Report all problems of a pattern file with their lines and columns, and the warnings of explain.",
    ),
    "explain": Place(
        "cepheid.cli.explain",
        "explain",
        "Explain what a pattern looks for and how: its stages, conditions, window, skip strategy and automaton.",
    ),
    "why": Place(
        "cepheid.cli.why.command",
        "why",
        "Say why events did not match: how far partial matches came, and what ended those that became no match.",
    ),
    "stream": Place(
        "cepheid.cli.stream",
        "stream",
        "Find the matches of a pattern, or of several, in events as they arrive, on a local Spark.",
    ),
    "stream rebalance": Place(
        "cepheid.cli.checkpoints.rebalance",
        "rebalance",
        "Give a stopped stream other numbers of shards and partitions, from which it continues.",
    ),
    "host": Place(
        "cepheid.cli.host.app",
        "host",
        "Run durable hosts, change them while they run, and read what they have found.",
    ),
    "knowledge": Place(
        "cepheid.cli.knowledge", "knowledge", "Check ontologies and instances, and ask what follows from them."
    ),
    "demo": Place(
        "cepheid.cli.demos.commands",
        "demo",
        "Find delays that propagate in 336,776 real flights, on a local Spark.",
    ),
    "demo-stream": Place(
        "cepheid.cli.demos.commands",
        "demo_stream",
        "Replay the flights as a stream, and see delays propagate as they happen.",
    ),
}


class LazyCommands(UserDict[str, Any]):
    """The commands as Typer needs them, by name."""

    def __init__(self) -> None:
        super().__init__(COMMANDS)

    def __getitem__(self, name: str) -> Any:
        if isinstance(found := self.data[name], Place):
            found = self.data[name] = _loaded(name, found)
        return found


def _loaded(name: str, place: Place) -> Any:
    """The command, or the group of commands."""
    found = getattr(import_module(place.module), place.name)
    group = found if isinstance(found, typer.Typer) else typer.Typer(add_completion=False, rich_markup_mode=None)
    if group is not found:
        group.command(name, epilog=EXIT_CODES)(found)
    command = typer.main.get_command(group)
    command.name = name
    return command

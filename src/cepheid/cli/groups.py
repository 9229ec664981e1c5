"""Groups of commands."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class CommandGroup(TyperGroup):
    """A group whose help has the whole first sentence of each command; Typer's own cuts it to the width of a line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.line_of(name)) for name in self.list_commands(ctx)])

    def line_of(self, name: str) -> str:
        """What the help says of the command with this name."""
        return first_sentence(self.commands[name].help or "")


def first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return f"{paragraph.split('. ')[0].rstrip('.')}."

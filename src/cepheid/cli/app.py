"""The command `cepheid`: one file per subcommand, which only calls the library.

A command imports what it needs when it runs, so that `cepheid --help` answers at once.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from cepheid.cli.commands import COMMANDS, LazyCommands
from cepheid.cli.failure import EXIT_CODES, ExitCode, in_options
from cepheid.cli.groups import CommandGroup
from cepheid.errors import CepheidWarning, closest

_REBALANCE = "stream rebalance"


class _Commands(CommandGroup):
    """The commands, of which one has two words, although the first is a command with an argument. Messages about
    options are as they are for users: Typer puts what Pydantic says before some of them.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = LazyCommands()  # of a dict, it has what Typer uses

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - its form
        return [*self.commands]

    def line_of(self, name: str) -> str:
        return COMMANDS[name].line

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:2] == _REBALANCE.split():
            args = [_REBALANCE, *args[2:]]
        elif (meant := _meant(args)) is not None:
            ctx.fail(f"no such command: {' '.join(args[:2])}. Did you mean '{meant}'?")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _in_our_words(error.message)
            raise


_PYDANTIC = {
    "Value error, ": "",
    "Input should be greater than or equal to ": "expected is at least ",
    "Input should be less than or equal to ": "expected is at most ",
    "Input should be a valid integer": "expected is a whole number",
    "Input should be a valid number": "expected is a number",
    ", unable to parse string as an integer": "",
    ", unable to parse string as a number": "",
}


def _in_our_words(message: str) -> str:
    for theirs, ours in _PYDANTIC.items():
        message = message.replace(theirs, ours)
    return message


def _meant(args: list[str]) -> str | None:
    """The command that two misspelled words mean; None if no command is like them."""
    if args[:2] == ["demo", "stream"]:
        return "demo-stream"
    is_near = len(args) > 1 and args[0] == "stream" and closest(args[1], [_REBALANCE.split()[1]])
    return _REBALANCE if is_near and not Path(args[1]).exists() else None


app = typer.Typer(
    name="cepheid",
    cls=_Commands,
    help="Complex event processing: find patterns in events, in this process or on Spark.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    add_completion=False,
    # A fault of Cepheid shows Python's own traceback; an error that users can fix never shows one.
    pretty_exceptions_enable=False,
    # Help drawn with rich takes as long as everything else together.
    rich_markup_mode=None,
)


def _version_asked(asked: bool) -> None:  # noqa: FBT001 the form of a Typer callback
    if asked:
        sys.stdout.write(f"cepheid {version('cepheid')}\n")
        raise typer.Exit


@app.callback()
def _options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version_asked, is_eager=True)
    ] = False,
) -> None:
    pass


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Prints a warning without its line of source code, which Python would add and which does not help a user."""
    text = str(message) if isinstance(message, CepheidWarning) else " ".join(str(message).split())
    sys.stderr.write(f"warning: {in_options(text)}\n")


def main() -> None:
    """Runs the command line. A fault of Cepheid has its own exit code, so that scripts can recognize it."""
    warnings.showwarning = _show_warning
    _speak_unicode()
    try:
        app()
    except Exception:  # noqa: BLE001 the border of the program: reported in full, with its own code
        traceback.print_exc()
        sys.stderr.write("This is a fault in Cepheid or in what it runs on; please report it with the lines above.\n")
        raise SystemExit(ExitCode.UNAVAILABLE) from None


def _speak_unicode() -> None:
    """Files and pipes get UTF-8 whatever the locale is, as JSON has it. What a terminal cannot show is escaped."""
    out = sys.stdout
    if isinstance(out, TextIOWrapper) and out.encoding.lower().replace("-", "") != "utf8":
        if out.isatty():
            out.reconfigure(errors="backslashreplace")
        else:
            out.reconfigure(encoding="utf-8")

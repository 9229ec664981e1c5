"""The group of commands `cepheid host`."""

from __future__ import annotations

import typer

from cepheid.cli.failure import EXIT_CODES
from cepheid.cli.host.changes import advance, deploy, input_, retire
from cepheid.cli.host.reading import matches, open_, patterns, sql
from cepheid.cli.host.run import run

host = typer.Typer(
    name="host",
    help="Run durable hosts, change them while they run, and read what they have found.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
)
for _name, _command in {
    "run": run,
    "input": input_,
    "deploy": deploy,
    "retire": retire,
    "advance": advance,
    "patterns": patterns,
    "open": open_,
    "matches": matches,
    "sql": sql,
}.items():
    host.command(_name, epilog=EXIT_CODES)(_command)

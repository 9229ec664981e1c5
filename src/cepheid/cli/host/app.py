"""The group of commands `cepheid host`."""

from __future__ import annotations

from collections.abc import Callable

import typer

from cepheid.cli.failure import EXIT_CODES
from cepheid.cli.groups import CommandGroup
from cepheid.cli.host.backups import backup, restore
from cepheid.cli.host.changes import advance, deploy, input_, retire
from cepheid.cli.host.reading import grants, matches, open_, patterns, sql
from cepheid.cli.host.routing import dead_letters, resend, subscribe, subscriptions, unsubscribe
from cepheid.cli.host.run import run

host = typer.Typer(
    name="host",
    cls=CommandGroup,
    help="Run durable hosts, change them while they run, and read what they have found.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "input": input_,
    "deploy": deploy,
    "retire": retire,
    "advance": advance,
    "patterns": patterns,
    "open": open_,
    "matches": matches,
    "sql": sql,
    "backup": backup,
    "restore": restore,
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "subscriptions": subscriptions,
    "dead-letters": dead_letters,
    "resend": resend,
    "grants": grants,
}
for _name, _command in _COMMANDS.items():
    host.command(_name, epilog=EXIT_CODES)(_command)

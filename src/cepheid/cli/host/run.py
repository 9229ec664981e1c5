"""`cepheid host run`: runs a host as a service."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated, Literal

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported
from cepheid.cli.host.options import StoreUrl, url_of
from cepheid.cli.host.sources import inputs_of, opened_source, sources_named


def run(
    store: StoreUrl,
    *,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="[INPUT=]URL",
            help="Where an input's events come from: kafka://host:port/topic, files://folder or rate://rows-per-second; "
            "repeat for several inputs.",
        ),
    ] = None,
    bad_rows: Annotated[
        Literal["error", "skip"],
        typer.Option(help="Rows that cannot be read as events are an error, or are left out and counted."),
    ] = "error",
    null_text: o.NullTexts = None,
    once: Annotated[bool, typer.Option("--once", help="End after reading everything that is there now.")] = False,
) -> None:
    """Run a host: feed it from its sources, store every step, and answer other commands.

    SIGTERM or Ctrl-C ends it after the current feed; the same command continues exactly there. Without --from it only
    answers.
    """
    named = sources_named(source or [])
    if once and any(end.kind == "rate" for _, end in named):
        raise typer.BadParameter("rate:// never ends: leave it out", param_hint="--once")
    with failures_reported(as_json=False), ExitStack() as stack:
        from cepheid.host import open_host
        from cepheid.hosts.durable.remote.place import socket_of
        from cepheid.hosts.durable.remote.server import HostServer
        from cepheid.hosts.durable.service import Service

        url = url_of(store)
        host = stack.enter_context(open_host(url))
        ends = inputs_of(named, host.inputs)
        sources = {
            name: stack.enter_context(
                closing(opened_source(end, host.inputs[name], bad_rows=bad_rows, null_texts=null_text or []))
            )
            for name, end in ends.items()
        }
        server = stack.enter_context(closing(HostServer(socket_of(url), host)))
        service = Service(host, server, sources)
        _on_signals(service.stop)
        service.run(lambda: None, once=once)
        skipped = sum(service.malformed.values())
        if skipped:
            sys.stderr.write(f"left out: {skipped:,} rows that could not be read as events\n")


def _on_signals(stop: Callable[[], None]) -> None:
    """Makes the first signal end the service in order, and the second one the process."""

    def stopped(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stopped)

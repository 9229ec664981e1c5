"""`cepheid host run`: runs a host as a service."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, in_options
from cepheid.cli.host.figures import Figures
from cepheid.cli.host.options import StoreUrl, store_name, url_of
from cepheid.cli.host.sources import Reading, inputs_of, kafka_options_from, opened_source, sources_named
from cepheid.cli.stream_ends import End

if TYPE_CHECKING:
    from cepheid.hosts.durable.service import Service


def run(
    store: StoreUrl,
    *,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="[INPUT=]URL",
            help="Where an input's events come from: kafka://host:port/topic, files://folder or "
            "rate://rows-per-second; repeat for several inputs.",
        ),
    ] = None,
    bad_rows: Annotated[
        Literal["error", "skip"],
        typer.Option(help="Rows that cannot be read as events are an error, or are left out and counted."),
    ] = "error",
    null_text: o.NullTexts = None,
    metrics: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file for the host's figures as Prometheus text, replaced each second."),
    ] = None,
    kafka_options: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Options of Kafka's client, a line each, as security.protocol=SSL; also passwords."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            help="What subscriptions may reach: module:function, https://host, kafka://host:port, the URL of another "
            "host's store, or a network such as 10.0.0.0/8 in which web hooks may be; repeat for several.",
        ),
    ] = None,
    retain: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="For how long, in event time, matches, timeouts and late events are kept, as '30 days'. "
            "Default: for ever.",
        ),
    ] = None,
    retain_rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="How many rows each of these tables and the outbox keep; what is still to be delivered stays. "
            "Default: all.",
        ),
    ] = None,
    workers: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="How many processes run the deployed patterns, each pattern in one of them; auto: one for each core.",
        ),
    ] = "1",
    worker_memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="The memory of each of several workers, as '2 GB'. Default: what there is."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after reading everything that is there now.")] = False,
) -> None:
    """Run a host: feed it from its sources, store every step, send what it finds to subscribers, and answer other
    commands.

    SIGTERM or Ctrl-C ends it after the current feed; the same command continues exactly there. Without --from it only
    answers.
    """
    named = sources_named(source or [])
    if retain is not None:
        o.checked_length(retain, "--retain")
    if once and any(end.kind == "rate" for _, end in named):
        raise typer.BadParameter("rate:// never ends: leave it out", param_hint="--once")
    with failures_reported(as_json=False, as_typed=_as_typed), ExitStack() as stack:
        reading = Reading(bad_rows, null_text or [], kafka_options_from(kafka_options))
        opening = {"allow": allow or [], "retain": retain, "retain_rows": retain_rows}
        opening |= {"workers": o.workers_from(workers), "worker_memory": worker_memory}
        service = _opened(url_of(store), named, reading, opening, stack)
        figures = Figures(service, store_name(store), metrics)
        _on_signals(service.stop)
        said = False

        def report() -> None:
            nonlocal said
            figures.update()
            if not said:
                _say_what_waits(service)
                said = True

        try:
            service.run(report, once=once)
        finally:
            figures.write()
        if skipped := sum(service.malformed.values()):
            sys.stderr.write(f"rows left out, as they could not be read as events: {skipped:,}\n")
        for pattern, late in service.late.items():
            sys.stderr.write(f"late events that pattern {pattern!r} has not taken: {late:,}\n")


def _opened(
    url: str, named: Sequence[tuple[str | None, End]], reading: Reading, opening: Mapping[str, Any], stack: ExitStack
) -> Service:
    """The service, ready to run; all that it needs is closed by the stack. `opening` has arguments of `open_host`."""
    from cepheid.host import open_host
    from cepheid.hosts.durable.remote.place import socket_of
    from cepheid.hosts.durable.remote.server import HostServer
    from cepheid.hosts.durable.service import Service

    host = stack.enter_context(open_host(url, kafka_options=reading.kafka_options, **opening))
    sources = {
        name: stack.enter_context(closing(opened_source(end, host.inputs[name], reading)))
        for name, end in inputs_of(named, host.inputs).items()
    }
    server = stack.enter_context(closing(HostServer(socket_of(url), host)))
    return Service(host, server, sources)


def _say_what_waits(service: Service) -> None:
    """Says which subscriptions get nothing as this host was started."""
    for name, problem in service.waiting.items():
        sys.stderr.write(f"subscription {name!r} waits: {in_options(problem)}\n")


def _as_typed(message: str) -> str:
    """The message, with the command that has the option for what to do with NULL."""
    return message.replace(
        'or with nulls="drop", which counts', 'or repeat `cepheid host input` with nulls="drop", which counts'
    )


def _on_signals(stop: Callable[[], None]) -> None:
    """Makes the first signal end the service in order, and the second one the process."""

    def stopped(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stopped)

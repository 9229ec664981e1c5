"""`cepheid host subscribe`, `unsubscribe`, `subscriptions`, `dead-letters` and `resend`: who gets what a host finds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported
from cepheid.cli.host.opened import asked, opened
from cepheid.cli.host.options import OutputFile, StoreUrl
from cepheid.cli.host.shown import say, show

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

SubscriptionName = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of the subscription.", show_default=False)
]


def subscribe(
    store: StoreUrl,
    name: SubscriptionName,
    *,
    to: Annotated[
        str,
        typer.Option(
            metavar="TARGET",
            help="https://host/path, kafka://host:port/topic, table://name, module:function, or the store of another "
            "host with its input, as sqlite:///other.db#alerts. `cepheid host run --allow` says what may be reached.",
            show_default=False,
        ),
    ],
    pattern: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only what this pattern finds; repeat for several. Default: all patterns."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Only rows for which this is true, as 'amount > 1000'.", show_default=False),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="The number in the outbox after which to begin. Default: what is found from now on.",
            show_default=False,
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="env:NAME",
            help="The environment variable, of the host that runs, with the key that signs what is sent to an HTTP "
            "endpoint.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(help="For one attempt.")] = "10 seconds",
    attempts: Annotated[int, typer.Option(help="After so many a message becomes a dead letter.")] = 8,
    pause: Annotated[
        str, typer.Option(help="Before the second attempt. Each further pause is twice as long, up to a minute.")
    ] = "1 second",
    as_json: o.AsJson = False,
) -> None:
    """Send what a host finds to a subscriber, in order. `cepheid host run` does the sending."""
    with failures_reported(as_json=as_json, as_typed=_as_typed), opened(store) as host:
        given = {"to": to, "pattern": pattern or "*", "where": where, "after": after, "secret": secret}
        host.subscribe(name, **given, timeout=timeout, attempts=attempts, pause=pause)
        say({"subscription": name}, f"subscribed {name}", as_json=as_json)


def unsubscribe(store: StoreUrl, name: SubscriptionName, *, as_json: o.AsJson = False) -> None:
    """End a subscription, and forget its dead letters."""
    with failures_reported(as_json=as_json), opened(store) as host:
        host.unsubscribe(name)
        say({"subscription": name}, f"unsubscribed {name}", as_json=as_json)


def subscriptions(store: StoreUrl, *, output: OutputFile = None, as_json: o.AsJson = False) -> None:
    """List the subscriptions: how far each was delivered, its status and its last problem."""
    with failures_reported(as_json=as_json), asked(store) as ask:
        columns = "name, pattern, condition, target, delivered, status, problem"
        rows = ask(f"SELECT {columns} FROM subscriptions ORDER BY name")
        show(rows, output, as_json=as_json, if_none="no subscriptions: add one with `cepheid host subscribe`")


def dead_letters(
    store: StoreUrl,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only of this subscription.", show_default=False)
    ] = None,
    *,
    output: OutputFile = None,
    as_json: o.AsJson = False,
) -> None:
    """List messages that were given up: how often they were tried, and why."""
    with failures_reported(as_json=as_json), asked(store) as ask:
        from cepheid.hosts.durable.stores.database import literal

        where = "" if name is None else f" WHERE subscription = {literal(name)}"
        if name is not None:
            _check_name(ask, name)
        columns = "subscription, number, pattern, match_id, attempts, problem, status, failed_at, content"
        query = f"SELECT {columns} FROM dead_letters{where} ORDER BY subscription, number"
        show(ask(query), output, as_json=as_json, if_none="no dead letters")


def resend(
    store: StoreUrl,
    name: SubscriptionName,
    *,
    number: Annotated[
        list[int] | None,
        typer.Option(metavar="NUMBER", help="Only the dead letter of this number; repeat for several."),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Send dead letters of a subscription again, marked as out of order. `cepheid host run` does the sending."""
    with failures_reported(as_json=as_json), opened(store) as host:
        count = host.resend(name, number or None)
        say({"letters": count}, f"to be sent again: {count}", as_json=as_json)


def _as_typed(message: str) -> str:
    """The message, which may be about an argument, with its name on the command line."""
    return re.sub(r"\A(pattern|where): ", r"--\1: ", re.sub(r"\Aname: ", "NAME: ", message))


def _check_name(ask: Callable[[str], pa.Table], name: str) -> None:
    """
    Raises:
        SchemaError: no subscription has this name.
    """
    from cepheid.hosts.durable.routing.stored import check_name

    check_name(name, ask("SELECT name FROM subscriptions ORDER BY name").column("name").to_pylist())

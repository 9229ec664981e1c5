"""The host that test_kill kills: `python killed.py URL FEEDS`. Its input, its patterns and its events are fixed.

It prints a line when it begins to open the store, when the store is open, and after each feed.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import pyarrow as pa

from cepheid import Pattern
from cepheid.errors import StoreError
from cepheid.host import Host, MatchesOf, open_host

T = TypeVar("T")

START = datetime(2024, 3, 4, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("session", pa.string()),
        ("region", pa.string()),
        ("kind", pa.string()),
    ]
)
IN_A_FEED = 40
PATIENCE = timedelta(seconds=60)
"""The longest time for which the store may refuse a step: as long as a server takes to start."""

CARTS = (
    Pattern.begin("login", name="carts")
    .where("kind = 'login'")
    .followed_by("checkout")
    .where("kind = 'checkout'")
    .not_followed_by("pay")
    .where("kind = 'pay'")
    .max_gap("40 seconds")
)
"""It has timeouts, and a negation."""
MEASURES = {"id": "checkout.id", "region": "checkout.region"}
REGIONS = Pattern.begin("one", name="regions").followed_by("other").where("session <> one.session").within("2 minutes")
"""A tier: two abandoned carts of one region."""
ALERTS = "alerts"
"""The table of a subscription to the carts."""
OUTPUTS = ("matches", "timeouts")


def feed_of(number: int) -> pa.Table:
    """The events of a feed, a second apart."""
    drawn = random.Random(number)
    first = number * IN_A_FEED
    ids = range(first, first + IN_A_FEED)
    columns = {
        "id": ids,
        "at": [START + timedelta(seconds=second) for second in ids],
        "session": [f"s{drawn.randrange(20)}" for _ in ids],
        "region": [drawn.choice(["north", "south"]) for _ in ids],
        "kind": [drawn.choice(["login", "checkout", "checkout", "pay"]) for _ in ids],
    }
    return pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()})


def end_of(feeds: int) -> datetime:
    """Half a second after the last event: no deadline is at this instant."""
    return START + timedelta(seconds=feeds * IN_A_FEED - 0.5)


def prepare(host: Host) -> None:
    """Declares the input, deploys the patterns and subscribes. Each of these steps may be done already."""
    host.input("clicks", SCHEMA, time="at", sequence="id")
    there = host.sql("SELECT name FROM patterns").column("name").to_pylist()
    if CARTS.name not in there:
        host.deploy(CARTS, input="clicks", key="session", measures=MEASURES, outputs=OUTPUTS)
    if REGIONS.name not in there:
        host.deploy(REGIONS, input=MatchesOf((CARTS.name,)), key="region", outputs=OUTPUTS)
    host.subscribe("table", to=f"table://{ALERTS}", pattern=CARTS.name)


def feed(host: Host, number: int) -> None:
    """Feeds the events of this number, lets their time pass, and delivers what was found."""
    host.feed(feed_of(number), input="clicks", position=(number + 1) * IN_A_FEED)
    host.advance_time(end_of(number + 1))
    host.deliver("0 seconds")


def stored_feeds(host: Host) -> int:
    """The number of feeds that the host has stored."""
    position = host.inputs["clicks"].position
    assert position is None or isinstance(position, int)
    return (position or 0) // IN_A_FEED


def main(url: str, feeds: int) -> None:
    _say("opening")
    host = _repeated(partial(open_host, url))
    _repeated(partial(prepare, host))
    _say("open")
    while (number := stored_feeds(host)) < feeds:
        _repeated(partial(feed, host, number))
        _say(str(number))
    host.close()


def _repeated(step: Callable[[], T]) -> T:
    """Repeats the step while the store refuses it, as a server does while it starts."""
    until = time.monotonic() + PATIENCE.total_seconds()
    while True:
        try:
            return step()
        except StoreError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

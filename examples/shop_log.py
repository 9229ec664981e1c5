"""The calls that the users of a shop make of its services, as a log: each call starts and, unless it hangs, ends.

A visit: log in (some passwords are wrong, and some visitors only guess them), look up items, add some to a cart, buy
them or not, and log out or not. The same seed gives the same log.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa

BEGIN = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1e6)
DAYS = 7
EVENTS_A_VISIT = 20
"""Roughly, to know how many users there must be."""
CATEGORIES = ("Book", "DVD", "Game", "Garden", "Kitchen")
CALL_START, CALL_END = "AtomicProcessStartEvent", "AtomicProcessEndEvent"


class Call(NamedTuple):
    process: str
    at: float
    """Seconds since the log began."""
    ok: bool = True
    category: str | None = None
    price: float | None = None


def shop_log(events: int, seed: int = 1) -> pa.Table:
    """About so many events, in the order in which they arrive: most within seconds, a few up to a minute late."""
    random = Random(seed)
    users = max(events // EVENTS_A_VISIT // 5, 1)
    rows: list[tuple[object, ...]] = []
    number = 0
    while len(rows) < events:
        user = int(users * random.random() ** 2)  # some come much more often than others
        country = ("US", "US", "CZ", "JP")[user % 4]
        for call in _visit(random):
            number += 1
            about = (number, call.process, f"u{user}", country, call.category, call.price)
            rows.append((call.at, CALL_START, None, *about))
            if random.random() > 0.0005:  # the others hang for ever
                slow = random.random() < 0.004
                seconds = random.uniform(5, 60) if slow else random.lognormvariate(-1.2, 0.6)
                rows.append((call.at + seconds, CALL_END, call.ok, *about))
    return _in_order_of_arrival(rows, seed)


def _visit(random: Random) -> Iterator[Call]:
    at = random.uniform(0, DAYS * 86_400)
    if random.random() < 0.01:  # guesses passwords
        for _ in range(random.randint(3, 12)):
            yield Call("Login", at, ok=False)
            at += random.uniform(5, 50)
        return
    while random.random() < 0.08:  # mistypes the password
        yield Call("Login", at, ok=False)
        at += random.uniform(4, 20)
    yield Call("Login", at)
    for _ in range(1 + int(random.expovariate(0.18))):
        at += 2 + random.expovariate(1 / 40)
        category, price = random.choice(CATEGORIES), round(random.lognormvariate(3.8, 1.3), 2)
        yield Call("LookupItem", at, category=category, price=price)
        if random.random() < 0.22:
            at += 1 + random.expovariate(1 / 15)
            yield Call("AddItemToCart", at, category=category, price=price)
            if random.random() < 0.5:
                at += 5 + random.expovariate(1 / 60)
                yield Call("Buy", at, ok=random.random() > 0.02, category=category, price=price)
    if random.random() < 0.7:
        yield Call("Logout", at + 2 + random.expovariate(1 / 30))


def _in_order_of_arrival(rows: list[tuple[object, ...]], seed: int) -> pa.Table:
    at, *columns = zip(*rows, strict=True)
    times = (np.array(at) * 1e6).astype(np.int64) + BEGIN
    random = np.random.default_rng(seed)
    delays = np.where(
        random.random(len(times)) < 0.001, random.uniform(0, 60, len(times)), random.exponential(0.5, len(times))
    )
    names = ("type", "ok", "call", "process", "user", "country", "category", "price")
    table = pa.table(
        {"at": pa.array(times, pa.timestamp("us", "UTC")), **dict(zip(names, map(list, columns), strict=True))}
    )
    return table.take(pa.array(np.argsort(times + delays * 1e6, kind="stable")))

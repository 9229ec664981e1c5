"""The calls that the users of a shop make of its services, as a log: each call starts and, unless it hangs, ends.

A visit is a session: log in (some passwords are wrong, and some visitors only guess them), look up items, add some to
a cart and buy them or not, buy others at once, and log out or not. The same seed gives the same log.
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
CALL_START, CALL_END = "AtomicProcessStartEvent", "AtomicProcessEndEvent"
CITIES = (("Pittsburgh", "US"), ("Boston", "US"), ("Prague", "CZ"), ("Osaka", "JP"))
CATEGORIES = {
    "Book": (6, 20),
    "Novel": (20, 15),
    "ScienceFiction": (30, 14),
    "CrimeNovel": (30, 12),
    "Textbook": (24, 95),
    "Cookbook": (12, 35),
    "Atlas": (16, 320),
    "Documentary": (30, 18),
    "Drama": (60, 16),
    "BoardGame": (30, 40),
    "VideoGame": (50, 55),
    "Cookware": (40, 60),
    "Knife": (20, 70),
    "GardenTool": (30, 45),
    "Seeds": (40, 5),
}
"""The number of items in each category, and what half of them cost less than."""


class Item(NamedTuple):
    name: str
    category: str
    """Its most specific category."""
    price: float


class Call(NamedTuple):
    process: str
    at: float
    """Seconds since the log began."""
    ok: bool = True
    item: Item | None = None


def _items() -> Iterator[Item]:
    random = Random(0)
    number = 1000
    for category, (count, price) in CATEGORIES.items():
        for _ in range(count):
            number += 1
            yield Item(f"n{number}", category, min(round(price * random.lognormvariate(0, 0.8), 2), 950.0))


ITEMS = tuple(_items())


def users(events: int) -> int:
    """How many users the log of so many events has."""
    return max(events // EVENTS_A_VISIT // 5, 1)


def facts(events: int) -> str:
    """The categories of items and the cities of the users of a log, as facts in Turtle."""
    prefixes = {"": "", "item": "item/", "user": "user/", "place": "place/"}
    heads = [f"@prefix {prefix}: <http://shop.example/{path}> ." for prefix, path in prefixes.items()]
    of_items = [f"item:{item.name} a :{item.category} ." for item in ITEMS]
    of_users = [f"user:u{user} :livesIn place:{CITIES[user % len(CITIES)][0]} ." for user in range(users(events))]
    return "\n".join([*heads, *of_items, *of_users])


def shop_log(events: int, seed: int = 1) -> pa.Table:
    """About so many events, in the order in which they arrive: most within seconds, a few up to a minute late."""
    random = Random(seed)
    rows: list[tuple[object, ...]] = []
    number = session = 0
    while len(rows) < events:
        session += 1
        user = int(users(events) * random.random() ** 2)  # some come much more often than others
        country = CITIES[user % len(CITIES)][1]
        for call in _visit(random):
            number += 1
            about = (number, session, call.process, f"u{user}", country, *(call.item or (None, None, None)))
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
        item = random.choice(ITEMS)
        yield Call("LookupItem", at, item=item)
        if random.random() < 0.22:
            at += 1 + random.expovariate(1 / 15)
            yield Call("AddItemToCart", at, item=item)
            if random.random() < (0.55 if item.price < 60 else 0.4):
                at += 5 + random.expovariate(1 / 60)
                yield Call("Buy", at, ok=random.random() > 0.02, item=item)
        elif random.random() < 0.03:
            at += 2 + random.expovariate(1 / 10)
            yield Call("BuyNow", at, ok=random.random() > 0.02, item=item)
    if random.random() < 0.9:
        yield Call("Logout", at + 2 + random.expovariate(1 / 30))


def _in_order_of_arrival(rows: list[tuple[object, ...]], seed: int) -> pa.Table:
    at, *columns = zip(*rows, strict=True)
    times = (np.array(at) * 1e6).astype(np.int64) + BEGIN
    random = np.random.default_rng(seed)
    delays = np.where(
        random.random(len(times)) < 0.001, random.uniform(0, 60, len(times)), random.exponential(0.5, len(times))
    )
    names = ("type", "ok", "call", "session", "process", "user", "country", "item", "category", "price")
    table = pa.table(
        {"at": pa.array(times, pa.timestamp("us", "UTC")), **dict(zip(names, map(list, columns), strict=True))}
    )
    return table.take(pa.array(np.argsort(times + delays * 1e6, kind="stable")))

"""The example of a shop: its patterns find what SQL finds, in the complete log and while events arrive.

SQL has the categories of books and the countries as columns; the patterns ask an ontology.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import median
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from examples import shop
from examples.shop_log import CATEGORIES, ITEMS, shop_log

from cepheid import Matcher, Policy, detect
from cepheid.knowledge import Knowledge

EVENTS = 20_000
BOOKS = ("Book", "Novel", "ScienceFiction", "CrimeNovel", "Textbook", "Cookbook", "Atlas")
BY_SQL = {
    "1a": "SELECT visitor, moment, moment FROM ok WHERE process = 'Logout'",
    "1b": "SELECT visitor, moment, moment FROM failed",
    "1c": f"""
        SELECT visitor, moment, moment FROM log
        WHERE type LIKE '%StartEvent' AND process = 'LookupItem' AND category IN {BOOKS}""",
    "2a": """
        SELECT visitor, a.moment, c.moment FROM failed a JOIN failed b USING (visitor) JOIN failed c USING (visitor)
        WHERE a.moment < b.moment AND b.moment < c.moment AND c.moment - a.moment <= INTERVAL 120 SECOND""",
    "2b": """
        SELECT session, l.moment, o.moment FROM ok l JOIN ok o USING (session)
        WHERE l.process = 'Login' AND o.process = 'Logout' AND l.moment < o.moment
        AND NOT EXISTS (FROM ok b WHERE b.process IN ('Buy', 'BuyNow') AND b.session = l.session
            AND b.moment BETWEEN l.moment AND o.moment)""",
    "2c": """
        SELECT session, l.moment, o.moment FROM ok l JOIN ok o USING (session)
        WHERE l.process = 'Login' AND o.process = 'Logout' AND o.moment - l.moment > INTERVAL 20 MINUTE""",
    "2c alarm": """
        SELECT session, l.moment, l.moment + INTERVAL 20 MINUTE FROM ok l WHERE l.process = 'Login'
        AND NOT EXISTS (FROM ok o WHERE o.session = l.session AND o.process = 'Logout'
            AND o.moment <= l.moment + INTERVAL 20 MINUTE)""",
}


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return shop_log(EVENTS)


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return shop.knowledge(EVENTS)


def asked(log: pa.Table, query: str) -> list[tuple[object, ...]]:
    """The answer of SQL, over all calls, those that ended well, and logins that failed."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("arrived", log)
        database.execute("""CREATE VIEW log AS SELECT *, "user" AS visitor, "at" AS moment FROM arrived""")
        database.execute("CREATE VIEW ok AS FROM log WHERE type LIKE '%EndEvent' AND ok")
        database.execute("CREATE VIEW failed AS FROM log WHERE process = 'Login' AND NOT ok")
        return sorted(database.sql(query).fetchall())


def spans(matches: pa.Table, name: str) -> list[tuple[object, ...]]:
    return sorted((row[shop.key_of(name)], row["match_start"], row["match_end"]) for row in matches.to_pylist())


def of_latest_start(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """For each key and end, one occurrence with the latest start."""
    latest = {(key, end): (key, start, end) for key, start, end in found}
    return sorted(latest.values())


@pytest.mark.parametrize("name", shop.EXPRESSIONS)
def test_afterwards(log: pa.Table, known: Knowledge, name: str) -> None:
    """All occurrences equal those of SQL; the recent policy gives, for each end, one with the latest start."""
    expected = asked(log, BY_SQL[name])
    assert expected
    assert spans(shop.afterwards(log, name, known, Policy.UNRESTRICTED), name) == expected
    if name not in shop.WITHOUT_RECENT:
        assert spans(shop.afterwards(log, name, known, Policy.RECENT), name) == of_latest_start(expected)


@pytest.mark.parametrize("name", ["1c", "2a", "2b", "2c", "2c alarm"])
def test_while_it_arrives(log: pa.Table, known: Knowledge, name: str) -> None:
    """A matcher that waits for delayed events finds the same while events arrive."""
    expected = asked(log, BY_SQL[name])
    matcher = shop.while_it_arrives(log, name, known, lateness="1 minute")
    assert matcher.counts.late == 0
    assert matcher.counts.matches == len(expected if name in shop.WITHOUT_RECENT else of_latest_start(expected))


@pytest.mark.parametrize("name", shop.NAMES)
def test_events_mean_what_sql_says(log: pa.Table, known: Knowledge, name: str) -> None:
    """All semantic filters become SQL, so that no session is needed."""
    matcher = Matcher(shop.pattern(name, known, Policy.UNRESTRICTED), log.schema, key=shop.key_of(name), time="at")
    explained = matcher.explain()
    assert "`process` IN (" in explained
    assert "growing" not in explained


def test_categories(known: Knowledge) -> None:
    """The ontology has the categories of all items, and SQL above the right ones of books."""
    items = known.solutions("shop:Item(?i)", ["i"])
    assert {name for (name,) in items} == {f"http://shop.example/item/{item.name}" for item in ITEMS}
    below = {name.rpartition("/")[2] for (name,) in known.solutions("rdfs:subClassOf(?c, shop:Book)", ["c"])}
    assert {"Book", *below} == {*BOOKS} < {*CATEGORIES}
    novels = [item for item in ITEMS if item.category in BOOKS[1:4]]
    assert len(known.solutions("shop:Novel(?i)", ["i"])) == len(novels)


@pytest.mark.parametrize("dollars", [100, 250, 1000])
def test_spending(log: pa.Table, known: Knowledge, dollars: float) -> None:
    """Pattern 3a: each time that a customer from the US has spent more on books within three days, after the time
    before.
    """
    expected = sorted(passed(log, dollars))
    assert expected
    found = detect(log, shop.spending(known, dollars), key="user", time="at", columns=["price"])
    assert sorted(found["match_end"].to_pylist()) == expected
    for row in found.to_pylist():
        assert sum(one["price"] for one in [*(row["earlier"] or []), row["last"]]) > dollars


def test_spending_while_it_arrives(log: pa.Table, known: Knowledge) -> None:
    """A matcher finds the same while events arrive."""
    assert shop.while_it_arrives(log, "3a", known, lateness="1 minute").counts.matches == len([*passed(log, 1000)])


def passed(log: pa.Table, dollars: float) -> Iterator[datetime]:
    """The times at which the sum of a user's purchases passes the limit; it starts anew then."""
    open_ = defaultdict[str, list[tuple[datetime, float]]](list)
    for row in sorted(log.to_pylist(), key=lambda row: row["at"]):
        is_purchase = row["process"] in ("Buy", "BuyNow") and row["ok"]
        if not is_purchase or row["country"] != "US" or row["category"] not in BOOKS:
            continue
        user, at = row["user"], row["at"]
        open_[user] = [(time, price) for time, price in open_[user] if at - time < timedelta(days=3)]
        open_[user].append((at, row["price"]))
        if sum(price for _, price in open_[user]) > dollars:
            yield at
            open_[user] = []


def test_popularity(log: pa.Table, known: Knowledge) -> None:
    """Pattern 3b: purchases by workflow and day, one for each purchase of what was looked up before."""
    ways = {"by the cart": ["LookupItem", "AddItemToCart", "Buy"], "at once": ["LookupItem", "BuyNow"]}
    expected: Counter[tuple[str, object]] = Counter()
    for calls in of_items(log).values():
        for workflow, processes in ways.items():
            ends = [call["at"] for call in calls if call["process"] == processes[-1]]
            expected.update((workflow, end.date()) for end in ends if is_way(calls, processes, end))
    rows = shop.popularity(log, known).to_pylist()
    found = {(workflow, row["date"]): row[workflow] for row in rows for workflow in ways if row[workflow]}
    assert found == expected
    assert len({workflow for workflow, _ in found}) == 2


def is_way(calls: list[dict[str, Any]], processes: list[str], end: datetime) -> bool:
    """Whether the calls contain the processes in order, from an hour before `end` at most to `end`."""
    latest = end
    for process in reversed(processes[:-1]):
        times = [call["at"] for call in calls if call["process"] == process and call["at"] < latest]
        if not times:
            return False
        latest = max(times)
    return end - latest <= timedelta(hours=1)


def of_items(log: pa.Table) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """The calls that ended well, for each session and item."""
    groups = defaultdict[tuple[int, str], list[dict[str, Any]]](list)
    for row in log.to_pylist():
        if row["ok"] and row["item"] is not None:
            groups[row["session"], row["item"]].append(row)
    return groups


def test_effectiveness(log: pa.Table, known: Knowledge) -> None:
    """Pattern 3c: of the carts the share that is bought within an hour, and the median of the times."""
    above = {
        "Book": BOOKS,
        "Film": ("Documentary", "Drama"),
        "Game": ("BoardGame", "VideoGame"),
        "ForCooks": ("Cookbook", "Cookware", "Knife"),
        "ForGardens": ("GardenTool", "Seeds"),
    }
    rows = {row["kind"]: row for row in shop.effectiveness(log, known).to_pylist()}
    assert {*rows} == {*above}
    for kind, categories in above.items():
        of_kind = [calls for calls in of_items(log).values() if calls[0]["category"] in categories]
        carts = sum(call["process"] == "AddItemToCart" for calls in of_kind for call in calls)
        seconds = [one for calls in of_kind for one in seconds_to_buy(calls)]
        assert rows[kind]["carts"] == carts
        assert rows[kind]["share"] == pytest.approx(len(seconds) / carts)
        assert rows[kind]["seconds"] == pytest.approx(median(seconds))


def seconds_to_buy(calls: list[dict[str, Any]]) -> Iterator[float]:
    """For each purchase within an hour, the seconds since the item was last put into the cart."""
    for end in (call["at"] for call in calls if call["process"] == "Buy"):
        times = [call["at"] for call in calls if call["process"] == "AddItemToCart" and call["at"] < end]
        if times and end - max(times) <= timedelta(hours=1):
            yield (end - max(times)).total_seconds()

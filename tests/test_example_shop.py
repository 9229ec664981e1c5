"""The example of a shop: its patterns find what SQL finds, in the complete log and while events arrive."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from examples import shop
from examples.shop_log import shop_log

from cepheid import Policy

BY_SQL = {
    "1a": "SELECT visitor, moment, moment FROM ok WHERE process = 'Logout'",
    "1b": "SELECT visitor, moment, moment FROM failed",
    "1c": "SELECT visitor, moment, moment FROM ok WHERE process = 'LookupItem' AND category = 'Book'",
    "2a": """
        SELECT visitor, a.moment, c.moment FROM failed a JOIN failed b USING (visitor) JOIN failed c USING (visitor)
        WHERE a.moment < b.moment AND b.moment < c.moment AND c.moment - a.moment <= INTERVAL 120 SECOND""",
    "2b": """
        SELECT visitor, l.moment, o.moment FROM ok l JOIN ok o USING (visitor)
        WHERE l.process = 'Login' AND o.process = 'Logout' AND l.moment < o.moment
        AND o.moment - l.moment <= INTERVAL 2 HOUR
        AND NOT EXISTS (FROM ok b WHERE b.process = 'Buy' AND b.visitor = l.visitor
            AND b.moment BETWEEN l.moment AND o.moment)""",
    "2c": """
        SELECT call, s.moment, e.moment FROM log s JOIN log e USING (call)
        WHERE s.type LIKE '%StartEvent' AND e.type LIKE '%EndEvent' AND e.moment - s.moment > INTERVAL 10 SECOND""",
    "2c alarm": """
        SELECT call, s.moment, s.moment + INTERVAL 10 SECOND FROM log s WHERE s.type LIKE '%StartEvent'
        AND NOT EXISTS (FROM log e WHERE e.call = s.call AND e.type LIKE '%EndEvent'
            AND e.moment <= s.moment + INTERVAL 10 SECOND)""",
    "3a": """
        SELECT visitor, p.moment, q.moment FROM us_book p JOIN us_book q USING (visitor)
        WHERE p.moment < q.moment AND q.moment - p.moment <= INTERVAL 3 DAY AND p.price + q.price > 1000""",
    "3b": """
        SELECT visitor, l.moment, b.moment FROM ok l JOIN ok a USING (visitor) JOIN ok b USING (visitor)
        WHERE l.process = 'LookupItem' AND a.process = 'AddItemToCart' AND b.process = 'Buy'
        AND l.moment < a.moment AND a.moment < b.moment AND b.moment - l.moment <= INTERVAL 15 MINUTE""",
    "3c": """
        SELECT visitor, c.moment, c.moment + INTERVAL 30 MINUTE FROM ok c WHERE c.process = 'AddItemToCart'
        AND NOT EXISTS (FROM ok b WHERE b.process = 'Buy' AND b.visitor = c.visitor
            AND b.moment BETWEEN c.moment AND c.moment + INTERVAL 30 MINUTE)""",
}


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return shop_log(20_000)


def by_sql(log: pa.Table, name: str) -> list[tuple[object, ...]]:
    """The key, the start and the end of each occurrence."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("arrived", log)
        database.execute("""CREATE VIEW log AS SELECT *, "user" AS visitor, "at" AS moment FROM arrived""")
        database.execute("CREATE VIEW ok AS FROM log WHERE type LIKE '%EndEvent' AND ok")
        database.execute("CREATE VIEW failed AS FROM log WHERE process = 'Login' AND NOT ok")
        database.execute(
            "CREATE VIEW us_book AS FROM ok WHERE process = 'Buy' AND country = 'US' AND category = 'Book'"
        )
        return sorted(database.sql(BY_SQL[name]).fetchall())


def spans(matches: pa.Table, name: str) -> list[tuple[object, ...]]:
    return sorted((row[shop.key_of(name)], row["match_start"], row["match_end"]) for row in matches.to_pylist())


def of_latest_start(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """For each key and end, one occurrence with the latest start."""
    latest = {(key, end): (key, start, end) for key, start, end in found}
    return sorted(latest.values())


@pytest.mark.parametrize("name", shop.EXPRESSIONS)
def test_afterwards(log: pa.Table, name: str) -> None:
    """All occurrences equal those of SQL; the recent policy gives, for each end, one with the latest start."""
    expected = by_sql(log, name)
    assert expected or name == "3a"
    assert spans(shop.afterwards(log, name, Policy.UNRESTRICTED), name) == expected
    if name not in shop.CONDITIONED:
        assert spans(shop.afterwards(log, name, Policy.RECENT), name) == of_latest_start(expected)


@pytest.mark.parametrize("name", ["2a", "2b", "2c alarm", "3c"])
def test_while_it_arrives(log: pa.Table, name: str) -> None:
    """A matcher that waits for delayed events finds the same while events arrive."""
    expected = by_sql(log, name)
    matcher = shop.while_it_arrives(log, name, lateness="1 minute", batch=5_000)
    assert matcher.counts.late == 0
    assert matcher.counts.matches == len(expected if name in shop.CONDITIONED else of_latest_start(expected))


def test_two_dear_books() -> None:
    """In a log that is long enough, the pattern of two expensive books finds matches."""
    log = shop_log(60_000)
    books = log.filter(pc.field("process") == "Buy")
    assert spans(shop.afterwards(books, "3a", Policy.UNRESTRICTED), "3a") == by_sql(books, "3a") != []

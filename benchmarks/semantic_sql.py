"""Semantic filters that become SQL, beside the same pattern with the answer written by hand in SQL.

python benchmarks/semantic_sql.py --events 10000000
python benchmarks/semantic_sql.py --events 2000000 --spark
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measuring import machine, print_table

from cepheid import OccurrencePattern, detect
from cepheid.knowledge import EventMapping, Knowledge, individual

SECOND = 1_000_000
CATEGORIES, BOOKS = 200, 20
"""The categories of items, of which the first are below Book, in a tree."""
PRODUCTS, RARE = 200_000, 100_000
"""The products, of which the first are rare."""
SHOP = "http://shop.example/"


def knowledge() -> Knowledge:
    """A shop whose categories are kinds of others: c0 is Book, and each other one is below one before it."""
    below = [f":c{n} rdfs:subClassOf :{'Book' if n == 0 else f'c{n // 2}'} ." for n in range(BOOKS)]
    others = [f":c{n} rdfs:subClassOf :Goods ." for n in range(BOOKS, CATEGORIES)]
    items = [f":i{n} a :c{n} ." for n in range(CATEGORIES)]
    kinds = ":Login rdfs:subClassOf :Event . :Request rdfs:subClassOf :Event . :Logout rdfs:subClassOf :Event ."
    head = f"@prefix : <{SHOP}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    properties = f":item a <{OBJECT}> ; rdfs:domain :Event . :user a <{OBJECT}> . :product a <{OBJECT}> ."
    literals = f":price a <{DATATYPE}> . :at a <{DATATYPE}> ."
    rare = [f":p{n} a :Rare ." for n in range(RARE)]
    texts = [head, kinds, properties, literals, *below, *others, *items, *rare]
    return Knowledge.read("\n".join(texts), prefixes={"": SHOP})


OBJECT = "http://www.w3.org/2002/07/owl#ObjectProperty"
DATATYPE = "http://www.w3.org/2002/07/owl#DatatypeProperty"


def events(count: int) -> pa.Table:
    chosen = np.random.default_rng(0)
    kinds = pa.array(["Login", "Request", "Logout"])
    items = pa.array([f"i{number}" for number in range(CATEGORIES)])
    products = pa.array([f"p{number}" for number in range(PRODUCTS)])
    return pa.table(
        {
            "id": np.arange(count),
            "at": pa.array(np.arange(count) * SECOND).cast(pa.timestamp("us", "UTC")),
            "user": chosen.integers(0, 1000, count),
            "kind": kinds.take(pa.array(chosen.choice(3, count, p=[0.1, 0.8, 0.1]))),
            "item": items.take(pa.array(chosen.integers(0, CATEGORIES, count))),
            "product": products.take(pa.array(chosen.integers(0, PRODUCTS, count))),
            "price": chosen.integers(1, 1000, count),
        }
    )


MAPPING = EventMapping(
    f"{SHOP}event/{{id}}",
    type="kind",
    properties={
        "item": individual("item"),
        "user": individual(f"{SHOP}user/{{user}}"),
        "product": individual("product"),
        "price": "price",
        "at": "at",
    },
)
DEARER = (
    "at(?a, ?t) ∧ at(?b, ?u) ∧ subtractDateTimesYieldingDayTimeDuration(?d, ?u, ?t)"
    ' ∧ lessThan(?d, "PT10M"^^xsd:dayTimeDuration)'
    " ∧ price(?a, ?p) ∧ price(?b, ?q) ∧ multiply(?x, ?p, 20) ∧ greaterThan(?q, ?x)"
)


class Case(NamedTuple):
    """A pattern with semantic filters, and the same by hand."""

    semantic: OccurrencePattern
    by_hand: OccurrencePattern
    prepared: Callable[[Any], Any] = lambda events: events
    """What is done with the events by hand before."""


def cases() -> dict[str, Case]:
    known, books = knowledge(), ", ".join(f"'i{number}'" for number in range(BOOKS))
    semantic = partial(OccurrencePattern.of, knowledge=known, mapping=MAPPING)
    a_book = "?r: Request[item(?r, ?i) ∧ Book(?i)]"
    by_hand = f"?r: Request[r.item IN ({books})]"
    two = "((?a: Request; ?b: Request)_600s)"
    return {
        "a request for a book": Case(semantic(a_book), _plain(by_hand)),
        "a login, then a request for a book": Case(
            semantic(f"(?l: Login; {a_book})_600s"), _plain(f"(?l: Login; {by_hand})_600s")
        ),
        "two requests for one item": Case(
            semantic(f"{two}[item(?a, ?i) ∧ item(?b, ?i)]"), _plain(f"{two}[a.item = b.item]")
        ),
        "a request 20 times as dear, within ten minutes": Case(
            semantic(f"{two}[{DEARER}]"),
            _plain(f"{two}[b.at - a.at < INTERVAL 10 MINUTES AND b.price > a.price * 20]"),
        ),
        f"a login for one of {RARE:,} products": Case(
            semantic("?l: Login[product(?l, ?i) ∧ Rare(?i)]"), _plain("?l: Login[l.is_rare]"), joined
        ),
    }


def joined(events: Any) -> Any:
    """The events with a column that says whether their product is rare."""
    rare = pa.table({"rare": [f"p{number}" for number in range(RARE)]})
    if isinstance(events, pa.Table):
        return events.append_column("is_rare", pc.is_in(events["product"], value_set=rare["rare"]))
    from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

    names = F.broadcast(events.sparkSession.createDataFrame(rare))
    found = events.join(names, events["product"] == names["rare"], "left")
    return found.withColumn("is_rare", F.col("rare").isNotNull()).drop("rare")


def _plain(text: str) -> OccurrencePattern:
    return OccurrencePattern.of(text).taxonomy("kind")


def compared(source: Any, clock: Callable[[], float], rounds: int) -> Iterator[list[object]]:
    """A line for each case: matches, events per second of both sides, and the median of the ratios."""
    for name, case in cases().items():
        works = (
            lambda: found(source, case.semantic),  # noqa: B023 - called at once
            lambda: found(case.prepared(source), case.by_hand),  # noqa: B023
        )
        seconds: tuple[list[float], list[float]] = ([], [])
        matches = [0, 0]
        for number in range(rounds + 1):
            for side in (number % 2, 1 - number % 2):
                begin = clock()
                matches[side] = works[side]()
                if number:  # the first round compiles
                    seconds[side].append(clock() - begin)
        assert matches[0] == matches[1], matches
        ratio = statistics.median(hand / own for own, hand in zip(*seconds, strict=True))
        yield [name, matches[0], *map(statistics.median, seconds), ratio]


def found(events: Any, pattern: OccurrencePattern) -> int:
    """The number of matches."""
    rows = detect(events, pattern, key="user", time="at", sequence="id", columns=["id"])
    return len(rows) if isinstance(rows, pa.Table) else int(rows.count())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spark", action="store_true", help="as a batch on Spark; seconds are those of a clock")
    given = parser.parse_args()
    print(machine())
    head = ["pattern", "matches", "semantic, s", "by hand, s", "semantic ÷ by hand"]
    if not given.spark:
        lines = [*compared(events(given.events), process_time, given.rounds)]
        print_table(f"{given.events:,} events in process, processor time", head, lines)
        return
    from cepheid.hosts.spark.session import local_session

    session = local_session("benchmark", time_zone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        pq.write_table(events(given.events), path, row_group_size=1 << 18)
        lines = [*compared(session.read.parquet(str(path)), perf_counter, given.rounds)]
    print_table(f"{given.events:,} events on Spark, seconds", head, lines)
    session.stop()


if __name__ == "__main__":
    main()

"""Semantic filters that become SQL, beside the same pattern with the answer written by hand in SQL.

python benchmarks/semantic_sql.py --events 10000000
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial
from time import process_time

import numpy as np
import pyarrow as pa
from measuring import machine, print_table, timed

from cepheid import OccurrencePattern, detect
from cepheid.knowledge import EventMapping, Knowledge, individual

SECOND = 1_000_000
CATEGORIES, BOOKS = 200, 20
"""The categories of items, of which the first are below Book, in a tree."""
SHOP = "http://shop.example/"


def knowledge() -> Knowledge:
    """A shop whose categories are kinds of others: c0 is Book, and each other one is below one before it."""
    below = [f":c{n} rdfs:subClassOf :{'Book' if n == 0 else f'c{n // 2}'} ." for n in range(BOOKS)]
    others = [f":c{n} rdfs:subClassOf :Goods ." for n in range(BOOKS, CATEGORIES)]
    items = [f":i{n} a :c{n} ." for n in range(CATEGORIES)]
    kinds = ":Login rdfs:subClassOf :Event . :Request rdfs:subClassOf :Event . :Logout rdfs:subClassOf :Event ."
    head = f"@prefix : <{SHOP}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."
    properties = f":item a <{OBJECT}> ; rdfs:domain :Event . :user a <{OBJECT}> ."
    return Knowledge.read("\n".join([head, kinds, properties, *below, *others, *items]), prefixes={"": SHOP})


OBJECT = "http://www.w3.org/2002/07/owl#ObjectProperty"


def events(count: int) -> pa.Table:
    chosen = np.random.default_rng(0)
    kinds = pa.array(["Login", "Request", "Logout"])
    items = pa.array([f"i{number}" for number in range(CATEGORIES)])
    return pa.table(
        {
            "id": np.arange(count),
            "at": pa.array(np.arange(count) * SECOND).cast(pa.timestamp("us", "UTC")),
            "user": chosen.integers(0, 1000, count),
            "kind": kinds.take(pa.array(chosen.choice(3, count, p=[0.1, 0.8, 0.1]))),
            "item": items.take(pa.array(chosen.integers(0, CATEGORIES, count))),
        }
    )


MAPPING = EventMapping(
    f"{SHOP}event/{{id}}",
    type="kind",
    properties={"item": individual("item"), "user": individual(f"{SHOP}user/{{user}}")},
)


def patterns() -> dict[str, tuple[OccurrencePattern, OccurrencePattern]]:
    """The patterns with semantic filters, and those by hand."""
    known, books = knowledge(), ", ".join(f"'i{number}'" for number in range(BOOKS))
    semantic = partial(OccurrencePattern.of, knowledge=known, mapping=MAPPING)
    a_book = "?r: Request[item(?r, ?i) ∧ Book(?i)]"
    by_hand = f"?r: Request[r.item IN ({books})]"
    return {
        "a request for a book": (semantic(a_book), _plain(by_hand)),
        "a login, then a request for a book": (
            semantic(f"(?l: Login; {a_book})_600s"),
            _plain(f"(?l: Login; {by_hand})_600s"),
        ),
        "two requests for one item": (
            semantic("((?a: Request; ?b: Request)_600s)[item(?a, ?i) ∧ item(?b, ?i)]"),
            _plain("((?a: Request; ?b: Request)_600s)[a.item = b.item]"),
        ),
    }


def _plain(text: str) -> OccurrencePattern:
    return OccurrencePattern.of(text).taxonomy("kind")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(machine())
    source, lines = events(given.events), []
    for name, pair in patterns().items():
        seconds: tuple[list[float], list[float]] = ([], [])
        matches = [0, 0]
        for number in range(given.rounds + 1):
            for side in (number % 2, 1 - number % 2):
                begin = process_time()
                run = partial(detect, source, pair[side], key="user", time="at", sequence="id", columns=["id"])
                _, found = timed(run)
                matches[side] = len(found)
                if number:  # the first round compiles
                    seconds[side].append(process_time() - begin)
        assert matches[0] == matches[1], matches
        medians = [statistics.median(side) for side in seconds]
        ratio = statistics.median(hand / own for own, hand in zip(*seconds, strict=True))
        lines.append([name, matches[0], given.events / medians[0] / 1e6, given.events / medians[1] / 1e6, ratio])
    head = ["pattern", "matches", "semantic, M events/s", "by hand", "semantic ÷ by hand"]
    print_table(f"{given.events:,} events, processor time", head, lines)


if __name__ == "__main__":
    main()

"""Conditions in Python compared with the same conditions in SQL, in process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from events import make_events
from measuring import alternating, machine, print_table, rows_wanted
from patterns import PATTERNS

from cepheid import Pattern, Skip, detect

Event = Mapping[str, Any]
Matched = Mapping[str, Sequence[Event]]


def is_dearer(event: Event, matched: Matched) -> bool:
    return bool(event["price"] > matched["a"][-1]["price"] * 1.1)


def is_below_average(event: Event, matched: Matched) -> bool:
    prices = [b["price"] for b in matched["b"]]
    return bool(event["price"] < sum(prices) / len(prices))


def is_kind(kind: int, event: Event) -> bool:
    return bool(event["kind"] == kind)


GUARDED = (
    Pattern.begin("a")
    .where("phase = 0")
    .followed_by("b")
    .where("phase = 1")
    .where(is_dearer)
    .followed_by("c")
    .where("phase = 2")
    .where(is_below_average)
    .within("1 minute")
    .skip(Skip.past_last_event())
)
ALONE = (
    Pattern.begin("a")
    .where(partial(is_kind, 1), name="kind 1")
    .followed_by("b")
    .where(partial(is_kind, 2), name="kind 2")
    .followed_by("c")
    .where(partial(is_kind, 3), name="kind 3")
    .within("5 minutes")
    .skip(Skip.past_last_event())
)
SQL_FIRST = (
    Pattern.begin("a")
    .where("kind = 1")
    .where(partial(is_kind, 1), name="kind 1")
    .followed_by("b")
    .where("kind = 2")
    .where(partial(is_kind, 2), name="kind 2")
    .followed_by("c")
    .where("kind = 3")
    .where(partial(is_kind, 3), name="kind 3")
    .within("5 minutes")
    .skip(Skip.past_last_event())
)

PAIRS = {
    "a function a stage": (PATTERNS["relaxed, 3 % of events relevant"], ALONE),
    "the same, each behind SQL": (PATTERNS["relaxed, 3 % of events relevant"], SQL_FIRST),
    "functions across events, behind SQL": (PATTERNS["across events"], GUARDED),
}


def matches_of(events: pa.Table, pattern: Pattern) -> int:
    return int(detect(events, pattern, key="device", time="at").num_rows)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=300_000)
    print(machine())
    events = make_events(rows, 1_000)
    lines = []
    for name, (sql, python) in PAIRS.items():
        found = matches_of(events, sql)
        assert matches_of(events, python) == found, name
        seconds = alternating({"sql": partial(matches_of, events, sql), "python": partial(matches_of, events, python)})
        lines.append([name, rows / seconds["sql"] / 1e3, rows / seconds["python"] / 1e3, found])
    print_table(
        f"In process, {rows:,} events, 1,000 keys",
        ["pattern", "thousand events/s, SQL", "with functions", "matches"],
        lines,
    )


if __name__ == "__main__":
    main()

"""Warnings about interval patterns that work, but perhaps not as intended."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.nameless import nameless


def interval_oddities(plan: IntervalPlan) -> Iterator[str]:
    """One sentence for each, without its end, with advice."""
    yield from nameless(plan.pattern)
    yield from plan.odd
    if plan.schema.time == plan.schema.end:
        yield (
            f"time: the column {plan.schema.time!r} is both start and end, so every event is an instant, which no "
            "other event overlaps. Name the column of the ends, as in time=('start', 'end'). If instants are meant, "
            "give the ends a column of their own"
        )

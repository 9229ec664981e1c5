"""Lazy frames of polars: matches are found when the result is collected."""

from __future__ import annotations

from functools import partial
from typing import Any

from cepheid.hosts.in_process.detect import detect_in_process, nothing_found
from cepheid.hosts.in_process.tables import kind_of, to_arrow
from cepheid.hosts.worker_memory import memory_as_limit
from cepheid.requests.request import Request


def is_lazy(events: object) -> bool:
    return kind_of(events) == "polars.LazyFrame"


def detect_lazily(events: Any, request: Request) -> Any:
    """A lazy frame of the matches. Each time it is collected, so are the events, and the report has the counts of the
    latest collection.

    Raises:
        PatternError, SchemaError: now, as `detect_in_process`. Its other errors and its warnings come when the result
            is collected.
    """
    import polars as pl

    empty, from_arrow = to_arrow(pl.DataFrame(schema=events.collect_schema()))
    schema = from_arrow(*nothing_found(empty, request)).schema
    if request.report is not None:
        request.report.clear()
    # The matches of some columns or rows of the events are others, so nothing may be pushed down.
    pushdowns = dict.fromkeys(("predicate_pushdown", "projection_pushdown", "slice_pushdown"), False)
    return events.map_batches(partial(_found, request), schema=schema, **pushdowns)


def _found(request: Request, events: Any) -> Any:
    if request.report is not None:
        request.report.clear()
    with memory_as_limit():
        table, from_arrow = to_arrow(events)
        return from_arrow(*detect_in_process(table, request, fixed_types=True))

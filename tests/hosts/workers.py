"""Runs patterns with one process and with several, at the border of matchers: the events in order, and tiny tasks."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa

from cepheid.families.family import Family
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import ordered_batches, plans_in_process
from cepheid.hosts.in_process.prepare import in_order_of_arrival, timed, usable
from cepheid.hosts.in_process.workers.division import Division
from cepheid.hosts.in_process.workers.matcher import DividedMatcher
from cepheid.hosts.in_process.workers.packing import packed
from cepheid.plan.division import TimeSlices
from cepheid.plan.plan_set import relevant_to_any
from cepheid.requests.request_of import request_of

Found = tuple[list[pa.Table], dict[str, int]]


def found_by_one_and_by_two(
    events: pa.Table, pattern: object, *, least: int, until: int | None = None, sliced: bool = True, **arguments: Any
) -> tuple[Found, Found]:
    """The rows of each pattern and the counts, with one worker and with two, whose tasks have at least `least` events.
    If `sliced`, the pattern must be one that can be divided by time.
    """
    events, request = in_order_of_arrival(events, request_of(pattern, **arguments))
    engine = DuckDbEngine()
    plans = plans_in_process(events.schema, request, engine)
    family: Family = request.family
    compiled = family.compile(plans)
    kept, _ = usable(timed(events, request), plans.schema, request.nulls, until)
    batches = [*ordered_batches(kept, plans, relevant_to_any(compiled.relevant_to), engine)]
    slices = family.time_slices(plans)
    assert not sliced or isinstance(slices, TimeSlices), slices
    division = Division(2, until, least, repeated=100)
    one = family.finite(compiled, until)
    with closing(DividedMatcher(family, plans, compiled, packed=packed(plans), division=division, size=0)) as two:
        return tuple(  # type: ignore[return-value]
            (_joined([*map(matcher.process, batches), matcher.finish()]), dict(matcher.counts))
            for matcher in (one, two)
        )


def _joined(results: list[list[pa.Table]]) -> list[pa.Table]:
    return [pa.concat_tables(tables).combine_chunks() for tables in zip(*filter(None, results), strict=True)]

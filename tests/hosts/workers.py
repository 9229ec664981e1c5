"""Runs patterns with one worker and with two, at the border of matchers: the events in order, and tiny tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from cepheid.events.batch import Batch
from cepheid.families.family import Family
from cepheid.hosts import meanwhile
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import ordered_events, plans_in_process
from cepheid.hosts.in_process.held_bits import HeldBits
from cepheid.hosts.in_process.prepare import in_order_of_arrival, timed, usable
from cepheid.hosts.in_process.workers.division import Division
from cepheid.hosts.in_process.workers.in_place import can_be_found_in_place, found_in_place
from cepheid.hosts.in_process.workers.matcher import DividedMatcher
from cepheid.hosts.in_process.workers.packing import packed
from cepheid.hosts.in_process.workers.task import EXPECTED
from cepheid.hosts.in_process.workers.worker_groups import Processes, Threads
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.plan.division import TimeSlices
from cepheid.plan.plan_set import relevant_to_any
from cepheid.requests.request_of import request_of

Found = tuple[list[pa.Table], dict[str, int]]
Find = Callable[[], Found]


def found_by_one_and_by_two(
    events: pa.Table, pattern: object, *, least: int, until: int | None = None, sliced: bool = True, **arguments: Any
) -> tuple[Found, Found]:
    """The rows of each pattern and the counts, with one worker and with two, whose tasks have at least `least` events.
    If `sliced`, the pattern must be one that can be divided by time.
    """
    with one_and_two(events, pattern, least=least, until=until, sliced=sliced, **arguments) as (one, two):
        return one(), two()


@contextmanager
def one_and_two(
    events: pa.Table, pattern: object, *, least: int, until: int | None = None, sliced: bool = True, **arguments: Any
) -> Iterator[tuple[Find, Find]]:
    """The same as two functions, each of which may raise. Two threads and two processes must do the same, and so must
    threads that put the events in order themselves, if they can.
    """
    events, request = in_order_of_arrival(events, request_of(pattern, **arguments))
    engine = DuckDbEngine()
    plans = plans_in_process(events.schema, request, engine)
    family: Family = request.family
    compiled = family.compile(plans)
    kept, _ = usable(timed(events, request), plans.schema, request.nulls, until)
    ordered = ordered_events(kept, plans, relevant_to_any(compiled.relevant_to), engine, HeldBits())
    batches = [*ordered.batches(0, ordered.keys.length, engine)]
    slices = family.time_slices(plans)
    assert not sliced or isinstance(slices, TimeSlices), slices
    division = Division(2, until, least, repeated=100)
    one = family.finite(compiled, until)
    threads = Threads(family.parts(compiled), count=2)
    processes = Processes(family.kind, packed(plans), count=2, memory=None, size=0)
    matcher = partial(DividedMatcher, family, plans, compiled, division=division)
    with closing(threads), closing(processes):
        ways = [partial(_found, matcher(group=threads), batches), partial(_found, matcher(group=processes), batches)]
        if family.in_order and can_be_found_in_place(plans, ordered):
            in_place = partial(found_in_place, family, plans, compiled, ordered, division=division, engine=engine)
            ways.append(lambda: _of(in_place()))
        yield partial(_found, one, batches), partial(_found_by_all, *ways)


def _found_by_all(first: Find, *others: Find) -> Found:
    try:
        found = first()
    except EXPECTED as error:
        for other in others:
            with pytest.raises(type(error), match=re.escape(str(error))):
                other()
        raise
    for other in others:
        assert other() == found
    return found


def _of(found: meanwhile.Found) -> Found:
    return _joined(found.results), found.counts


def _found(matcher: FiniteMatcher, batches: list[Batch]) -> Found:
    results = [*map(matcher.process, batches), matcher.finish()]
    return _joined(results), dict(matcher.counts)


def _joined(results: list[list[pa.Table]]) -> list[pa.Table]:
    return [pa.concat_tables(tables).combine_chunks() for tables in zip(*filter(None, results), strict=True)]

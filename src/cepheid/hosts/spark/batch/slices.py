"""Time slices on Spark: events without key, and on request those of each key, are divided by time, where the patterns
allow it.

The slices have one width for all events, a multiple of the time that a slice reads on. So Spark needs no look at the
data before it divides them: borders at quantiles of the times would need a job of their own, which reads all events
once more, before `detect` returns.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from cepheid.errors import PatternError
from cepheid.events.batch import SUB_KEY_PREFIX, TIME
from cepheid.hosts.spark.lift import Lift, Times
from cepheid.plan.division import TimeSlices
from cepheid.plan.plan_set import PlanSet
from cepheid.requests.request import Request

WINDOWS = 8
"""The width of a slice in the times that it reads before and after: an eighth of the events is then in two slices. With
a smaller number it is more, and with a larger one there are fewer slices, so that tasks differ more.
"""
_SLICE = "slice"
_SECOND = 1_000_000


def asked_slices(request: Request, plans: PlanSet[Any], *, divided: bool) -> TimeSlices | None:
    """How events are divided by time, if they are: because the user asks for it or, where they are not `divided`
    otherwise, as the patterns allow it. Slices that would have to know what the one before leaves open would follow one
    another in a single task, so they must settle.

    Raises:
        PatternError: slices are asked for, and the patterns forbid them.
    """
    if divided and not request.slices:
        return None
    found = request.family.time_slices(plans, settled=True)
    if not isinstance(found, str):
        return found
    if request.slices:
        raise PatternError(f"slices: a key's events cannot be divided by time on Spark, because {found}. Leave it out")
    return None


def in_slices(shipped: DataFrame, times: Times, slices: TimeSlices, lift: Lift) -> tuple[DataFrame, int]:
    """The events with the number of their slice as a sub-key, and the width of slices in microseconds. An event is in
    its own slice, and in the neighbouring ones whose matches may need it.
    """
    lift.layout[f"{SUB_KEY_PREFIX}{len(lift.sub_keys)}"] = _SLICE
    before = slices.before + (slices.window if slices.waits else 0)
    width = WINDOWS * max(1, before + slices.window)
    time = _microseconds(lift[TIME], times)
    first, last = (_slice_of(f"({time} + {by})", width) for by in (-slices.window, before))
    return shipped.selectExpr("*", f"explode(sequence({first}, {last})) AS {_SLICE}"), width


def _slice_of(time: str, width: int) -> str:
    """The number of the slice that a time (microseconds) is in, as a whole number: a DOUBLE would round."""
    return f"({time} - pmod({time}, {width})) DIV {width}"


def _microseconds(time: str, times: Times) -> str:
    """The instants in microseconds since 1970, in UTC. TIMESTAMP_NTZ in UTC is read part by part: any cast would depend
    on the session's zone.
    """
    if times.zone is None:
        return f"unix_micros({time})"
    seconds = f"unix_date(CAST({time} AS DATE)) * 86400L + hour({time}) * 3600 + minute({time}) * 60"
    fraction = f"extract(SECOND FROM {time}) * {_SECOND}"
    return f"({seconds}) * {_SECOND} + CAST({fraction} AS BIGINT)"

"""Reasons in the time and the place of events: windows, gaps, and events between."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.compile.arrays import Ints
from cepheid.kernel.arrays import Flags
from cepheid.lang.duration import microseconds
from cepheid.output.stages.near.found import NearMatches, Taken
from cepheid.output.stages.near.reasons import Known, Reasons
from cepheid.output.stages.near.texts import joined, lengths_text, times_text
from cepheid.plan.stages.near.changes import Change, Kind

_MINUTE = 60_000_000
_SOME_BETWEEN = 4
"""So many events between are neither near nor far."""


def of_window(near: NearMatches, known: Known) -> Reasons:
    """The first event after the end of the window."""
    assert near.change.length is not None
    taken, length = near.taken, microseconds(near.change.length)
    times = known.order.times(taken.event)
    needed = times - times[taken.begin][taken.match]
    return _too_late(taken, taken.first_with(needed >= length), needed, length)


def of_gap(near: NearMatches, known: Known) -> Reasons:
    """The first event too long after the one before."""
    assert near.change.length is not None
    taken, length = near.taken, microseconds(near.change.length)
    times = known.order.times(taken.event)
    needed = np.diff(times, prepend=times[:1])
    return _too_late(taken, taken.first_with(_steps(near.change, taken) & (needed >= length)), needed, length)


def of_contiguity(near: NearMatches, known: Known) -> Reasons:
    """The first event that does not directly follow the one before; the reason is at the first event between."""
    taken, order = near.taken, known.order
    where = order.places(taken.event)
    between = np.diff(where, prepend=where[:1]) - 1
    places = taken.first_with(_steps(near.change, taken) & (between > 0))
    between, at = between[places], order.number[where[places - 1] + 1]
    text = joined([pa.array(between).cast(pa.string()), _either(between == 1, "event between", "events between")])
    if known.times is not None:
        text = joined([text, _either(between == 1, "at", "the first at")], ", ")
        text = joined([text, times_text(known.times.take(pa.array(at)))])
    far = between / (between + _SOME_BETWEEN)
    reached, unknown = taken.stage[places - 1], np.zeros(len(places), np.bool_)
    return Reasons(text, taken.match[places], reached, at, between.astype(np.float64), far, unknown)


def _steps(change: Change, taken: Taken) -> Flags:
    """Whether before each event the changed stages may have to wait longer, or for other events."""
    concerned = np.isin(taken.stage, [*change.stages])
    inside = np.append(False, concerned[:-1])
    steps = inside == change.in_loop
    if change.kind is Kind.GAP and not change.in_loop:
        steps[:] = True
    found: Flags = steps & concerned & ~taken.is_first
    return found


def _too_late(taken: Taken, places: Ints, needed: Ints, length: int) -> Reasons:
    """The reasons at these places, with the time that each event needs."""
    needed = needed[places]
    over = needed - length
    how = pc.if_else(pa.array(over > 0), joined([lengths_text(over), "too long"]), "which is not less")
    text = joined([lengths_text(needed), how], ", ")
    reached, unknown = taken.stage[places - 1], np.zeros(len(places), np.bool_)
    return Reasons(text, taken.match[places], reached, taken.event[places], over / _MINUTE, over / needed, unknown)


def _either(flags: Flags, one: str, other: str) -> pa.Array:
    return pc.if_else(pa.array(flags), one, other)

"""Lifts what probes read, for a few events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cepheid.errors import ConditionError
from cepheid.events.batch import Batch
from cepheid.hosts.in_process.detect import Prepared
from cepheid.hosts.in_process.prepare import TimedEvents, lifted, timed


def probed(ready: Prepared, numbers: pa.Array, probes: Any) -> tuple[Any, Batch]:
    """The events of these numbers, lifted for the probes. Also returns the probes, without the columns that fail on one
    of the events: where SQL evaluates a condition, another part of it may guard them.
    """
    events = timed(ready.source.take(numbers), ready.request)
    try:
        return probes, lifted(events, probes, ready.engine)
    except ConditionError:
        failing = [number for number in range(len(probes.values)) if _fails(ready, events, probes, number)]
        sound = probes.without(failing)
        return sound, lifted(events, sound, ready.engine)


def _fails(ready: Prepared, events: TimedEvents, probes: Any, number: int) -> bool:
    others = [other for other in range(len(probes.values)) if other != number]
    try:
        lifted(events, probes.without(others), ready.engine)
    except ConditionError:
        return True
    return False

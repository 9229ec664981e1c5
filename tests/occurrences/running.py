"""Runs the kernel and the reference on given operators and events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cepheid.compile.occurrences.compiled import Trees, compile_trees, regime_of
from cepheid.kernel.arrays import FOREVER, Events, Visits
from cepheid.kernel.occurrences.kernel import OccurrenceKernel
from cepheid.kernel.occurrences.reference import reference_occurrences
from cepheid.kernel.occurrences.results import EmittedOccurrences, emitted_of
from cepheid.kernel.reference_events import Event
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.limits import Limits
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import Operator
from occurrences.strategies import TIME_VALUE


def kernel_of(
    operators: Sequence[Operator],
    policy: Policy,
    *,
    by_operator: bool = False,
    roots: Sequence[int] = (),
    limits: Limits | None = None,
) -> OccurrenceKernel:
    regime = regime_of(policy, by_operator=by_operator)
    roots = tuple(roots) or (len(operators) - 1,)
    variables = max((op.number + 1 for op in operators if op.kind is Kind.BOUND), default=0)
    trees = Trees(tuple(operators), roots, regime, variables, (pa.int64(), pa.int64()), TIME_VALUE)
    limits = limits or Limits()
    return OccurrenceKernel(compile_trees([trees], limits)[0], [policy] * len(roots), limits)


def arrays_of(events: Sequence[Event]) -> Events:
    values = np.array([event.values or (0, 0) for event in events], np.int64).reshape(-1, 2).T.copy()
    times, masks = (np.array([getattr(event, name) for event in events], np.int64) for name in ("time", "mask"))
    return Events(times, masks, values, np.zeros(values.shape, np.bool_))


def one_visit(end: int, until: int, *, closes: bool = False, key: int = 0) -> Visits:
    return Visits(np.array([key], np.int32), np.array([end]), np.array([until]), np.array([closes]))


def by_kernel(
    operators: Sequence[Operator],
    events: Sequence[Event],
    policy: Policy,
    *,
    by_operator: bool = False,
    until: int = FOREVER,
) -> EmittedOccurrences:
    """The occurrences that the kernel emits."""
    kernel = kernel_of(operators, policy, by_operator=by_operator)
    (found,) = kernel.run(arrays_of(events), one_visit(len(events), until, closes=True))
    return found


def by_reference(
    operators: Sequence[Operator], events: Sequence[Event], policy: Policy, until: int | None = None
) -> EmittedOccurrences:
    root = len(operators) - 1
    found = reference_occurrences(operators, root, policy, events, time_value=TIME_VALUE, until=until)
    return emitted_of(found, max((op.number + 1 for op in operators if op.kind is Kind.BOUND), default=0))


Row = tuple[int, int, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]


def rows(found: EmittedOccurrences) -> list[Row]:
    """The end, start, members and variables of each occurrence."""
    begins = [0, *found.stop.tolist()]
    members = list(
        zip(*(getattr(found, name).tolist() for name in ("time", "position", "delay", "depth")), strict=True)
    )
    names = ("first", "first_delay", "last", "last_delay", "is_event")
    variables = [
        tuple(zip(*(getattr(found, name)[row].tolist() for name in names), strict=True))
        for row in range(len(found.start))
    ]
    return [
        (end, start, tuple(members[begin:stop]), bound)
        for end, start, begin, stop, bound in zip(
            found.end.tolist(), found.start.tolist(), begins[:-1], begins[1:], variables, strict=True
        )
    ]


def spans(found: EmittedOccurrences) -> list[tuple[int, int]]:
    """The end and start of each occurrence."""
    return list(zip(found.end.tolist(), found.start.tolist(), strict=True))

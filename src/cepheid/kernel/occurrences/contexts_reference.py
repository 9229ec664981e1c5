"""The definition of Snoop's contexts: which occurrences an operator emits, which wait for a partner, and which are
consumed.

It follows Chakravarthy and others, who define contexts by what their algorithm does. Here occurrences have a start and
an end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from cepheid.kernel.occurrences.values import Derivation, joined
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.occurrences.constants import Kind

Waiting: TypeAlias = tuple[list[Derivation], list[Derivation]]
"""The occurrences that wait at an operator: those from its left operand, and those from its right one."""


def queue_of(left: Sequence[Derivation], right: Sequence[Derivation]) -> list[tuple[int, Derivation]]:
    """The occurrences in the order in which an operator takes them, each with its side: by end, by start, left before
    right.
    """
    queue = [*((0, o) for o in left), *((1, o) for o in right)]
    return sorted(queue, key=lambda item: (item[1].occurrence.end, item[1].occurrence.start, item[0], item[1]))


def offer(policy: Policy, kind: Kind, waiting: Waiting, side: int, o: Derivation) -> Iterator[Derivation]:
    """Yields the occurrences that an occurrence from one side completes. It consumes what waits on the other side, or
    waits itself.
    """
    others = waiting[1 - side]
    if kind is Kind.BOTH:
        ready = list(others)
    else:
        ready = [s for s in others if s.occurrence.end < o.occurrence.start] if side else []
    waits = kind is Kind.BOTH or not side
    if policy is Policy.SNOOP_RECENT:
        if ready:
            yield joined(ready[-1], o)
        if waits:
            waiting[side][:] = [o]
        return
    if not ready:
        if waits:
            waiting[side].append(o)
        return
    used = ready[:1] if policy is Policy.CHRONICLE else ready
    for s in used:
        others.remove(s)
    if policy is not Policy.CUMULATIVE:
        yield from (joined(s, o) for s in used)
        return
    whole = o
    for s in used:
        whole = joined(s, whole)
    yield whole

"""The agenda of a closure: a heap of facts that are still to be followed, the earliest first."""

from __future__ import annotations

from cepheid.kernel.jit import inlined
from cepheid.kernel.knowledge.layout import Agenda, ClosureCursor


@inlined
def push(agenda: Agenda, cursor: ClosureCursor, time: int, fact: int) -> None:
    """Puts a fact in. There must be room."""
    at = cursor.waiting
    cursor.waiting += 1
    while at > 0:
        above = (at - 1) >> 1
        if agenda.time[above] <= time:
            break
        agenda.time[at], agenda.fact[at] = agenda.time[above], agenda.fact[above]
        at = above
    agenda.time[at], agenda.fact[at] = time, fact


@inlined
def pop(agenda: Agenda, cursor: ClosureCursor) -> None:
    """Takes the first one out."""
    cursor.waiting -= 1
    count = cursor.waiting
    time, fact = agenda.time[count], agenda.fact[count]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and agenda.time[below + 1] < agenda.time[below]:
            below += 1
        if agenda.time[below] >= time:
            break
        agenda.time[at], agenda.fact[at] = agenda.time[below], agenda.fact[below]
        at = below
    agenda.time[at], agenda.fact[at] = time, fact

"""The definition of the event algebra: plain Python over sets, slow and obvious. The compiled kernel must equal it.

The operators are Vaculín and Sycara's. What their paper leaves open is decided as follows. Sequence is strict: the left
side ends before the right side starts. The bounds of minus are closed. A temporal event is identified by what it comes
after. A derivation is an occurrence with the values of its variables. An occurrence is emitted if it has a derivation.

A semantic filter is asked at the end of the operand that it stands on (for minus, the left one), of all that the events
up to then say, those of that time included. What an event is, is asked at its own time.
"""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.kernel.occurrences.contexts_reference import Waiting, offer, queue_of
from cepheid.kernel.occurrences.session_reference import Known
from cepheid.kernel.occurrences.values import (
    Derivation,
    Events,
    bound,
    delayed,
    holds,
    joined,
    least_of_each,
    of_event,
    recency,
    single_events,
)
from cepheid.kernel.reference_events import Event
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import Operator


def reference_occurrences(
    operators: Sequence[Operator],
    root: int,
    policy: Policy,
    events: Sequence[Event],
    *,
    time_value: int | None = None,
    until: int | None = None,
    known: Known | None = None,
) -> list[Derivation]:
    """The occurrences in one key's events, each in its least derivation. The events must be in order. The result is
    sorted by end, start and members; in Snoop's contexts it is in the order of emission. Time passes to `until`, or
    without end if that is None. `known` answers for operators that ask what events mean.
    """
    if policy.is_context:
        return _Contexts(operators, policy, events).emissions(root)
    found = least_of_each(_Streams(operators, events, time_value, until, known).stream(root))
    if policy is Policy.UNRESTRICTED:
        return found
    recent: dict[int, Derivation] = {}
    for derivation in found:
        end = derivation.occurrence.end
        recent[end] = max(recent.get(end, derivation), derivation, key=recency)
    return list(recent.values())


class _Streams:
    """The derivations of each operator, over all events at once."""

    def __init__(
        self,
        operators: Sequence[Operator],
        events: Sequence[Event],
        time_value: int | None,
        until: int | None,
        known: Known | None,
    ) -> None:
        self._operators = operators
        self._events: Events = {event.position: event for event in events}
        self._time_value = time_value
        self._until = until
        self._known = known

    def stream(self, row: int) -> set[Derivation]:
        operator = self._operators[row]
        if operator.kind is Kind.LEAF:
            return {of_event(event) for event in self._events.values() if self._takes(operator, event)}
        left, *rest = (self.stream(operand) for operand in operator.operands)
        right = rest[0] if rest else set()
        match operator.kind:
            case Kind.BOTH:
                return {joined(s, t) for s in left for t in right}
            case Kind.EITHER:
                return left | right
            case Kind.THEN:
                return {joined(s, t) for s in left for t in right if s.occurrence.end < t.occurrence.start}
            case Kind.WITHOUT:
                return {s for s in left if not any(self._takes_away(operator, s, t) for t in right)}
            case Kind.WITHIN:
                return {s for s in left if s.occurrence.end - s.occurrence.start <= operator.number}
            case Kind.DELAYED:
                later = {delayed(s, operator.number) for s in left}
                return {t for t in later if self._until is None or t.occurrence.end <= self._until}
            case Kind.BOUND:
                return {bound(s, operator.number) for s in left}
            case _:
                return {s for s in left if self._holds(operator, s)}

    def _takes(self, leaf: Operator, event: Event) -> bool:
        if leaf.number >= 0 and not event.mask >> leaf.number & 1:
            return False
        if leaf.type is None:
            return True
        assert self._known is not None
        return self._known.is_of(event.position, leaf.type, event.time)

    def _takes_away(self, operator: Operator, s: Derivation, t: Derivation) -> bool:
        """Whether t lies in s, and the script, if any, holds for both."""
        inside = s.occurrence.start <= t.occurrence.start and t.occurrence.end <= s.occurrence.end
        return inside and (not operator.is_conditional or self._holds(operator, s, t))

    def _holds(self, operator: Operator, *derivations: Derivation) -> bool:
        binding = [one for derivation in derivations for one in derivation.binding]
        if operator.filter is not None:
            assert self._known is not None
            individuals = single_events(binding, operator.filter.variables)
            time = derivations[0].occurrence.end
            return individuals is not None and self._known.holds(operator.filter.atoms, individuals, time)
        assert operator.script is not None
        return holds(operator.script, binding, self._events, self._time_value)


class _Contexts:
    """Snoop's contexts: what each operator emits, in order, and what it consumes."""

    def __init__(self, operators: Sequence[Operator], policy: Policy, events: Sequence[Event]) -> None:
        self._operators = operators
        self._policy = policy
        self._events = events

    def emissions(self, row: int) -> list[Derivation]:
        operator = self._operators[row]
        match operator.kind:
            case Kind.LEAF:
                return [of_event(event) for event in self._events if event.mask >> operator.number & 1]
            case Kind.WITHIN:
                left = self.emissions(operator.left)
                return [s for s in left if s.occurrence.end - s.occurrence.start <= operator.number]
        queue = queue_of(*(self.emissions(operand) for operand in operator.operands))
        if operator.kind is Kind.EITHER:
            return [o for _, o in queue]
        waiting: Waiting = ([], [])
        return [made for side, o in queue for made in offer(self._policy, operator.kind, waiting, side, o)]

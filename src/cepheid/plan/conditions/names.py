"""What conditions and measures may refer to: the stages or variables of a pattern, by number."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.plan.conditions.resolve import Event


@dataclass(frozen=True)
class Names:
    """Stages or variables, and which of their events are certain to be there."""

    names: tuple[str, ...]
    certain: tuple[int, ...]
    """For each name, the least number of events that it has once the pattern is past it."""
    passed_by: int
    """A condition whose number is lower than this is evaluated once the pattern is past all names with lower numbers
    than the condition.
    """

    def may_be_absent(self, event: Event, condition: int) -> bool:
        """Whether the event may be missing when condition number `condition` is evaluated."""
        if event.stage is None:
            return False
        is_past = event.stage < condition < self.passed_by
        return not is_past or event.back >= self.certain[event.stage]

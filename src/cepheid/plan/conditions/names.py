"""What conditions and measures may refer to: the stages or variables of a pattern, by number."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.plan.conditions.resolve import Event


@dataclass(frozen=True)
class Names:
    """Stages or variables, and which of their events are certain to be there."""

    names: tuple[str, ...]
    certain: tuple[int, ...]
    """For each, the least number of events that it has once the pattern is past it."""
    passed_by: int
    """Conditions with lower numbers than this are evaluated once the pattern is past all names with lower numbers."""

    def may_be_absent(self, event: Event, condition: int) -> bool:
        """Whether the event may be missing when condition number `condition` is evaluated."""
        if event.stage is None:
            return False
        passed = event.stage < condition < self.passed_by
        return not passed or event.back >= self.certain[event.stage]

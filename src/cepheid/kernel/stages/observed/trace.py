"""The reference step for one key, which records each of its steps."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from cepheid.compile.stages.compiled import CompiledPattern
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.observed.fates import End, Start
from cepheid.kernel.stages.observed.key_matcher import ObservedKeyMatcher
from cepheid.kernel.stages.python_kernel import Bounds
from cepheid.kernel.stages.reference import Match, PartialMatch, positions_of

Taken: TypeAlias = tuple[tuple[int, int], ...]
"""The stage and the position of each event of a partial match."""


class Moved(NamedTuple):
    """What an event did to a partial match."""

    event: int
    """The position of the event."""
    before: Taken
    """Empty: the event was offered to the first stage."""
    truths: tuple[tuple[int, bool], ...]
    """The conditions that were evaluated, by number, and whether each was true."""
    takes: tuple[int, ...]
    """The stages that took the event."""
    ignores: bool
    """Whether the partial match goes on without the event."""
    completes: bool
    """Whether all that the pattern asks for is there."""
    end: End | None
    """How the partial match has ended without a match."""


class Ended(NamedTuple):
    """A partial match that no event of its own has ended."""

    before: Taken
    end: End


class Emitted(NamedTuple):
    """A match that is emitted, and the time that made it certain (None: the end of the events)."""

    taken: Taken
    time: int | None


Step: TypeAlias = Moved | Ended | Emitted


class TracedKeyMatcher(ObservedKeyMatcher):
    """Finds what KeyMatcher finds, and adds what it does to `steps`."""

    def __init__(self, pattern: CompiledPattern, bounds: Bounds, starts: list[Start], steps: list[Step]) -> None:
        super().__init__(pattern, bounds, starts)
        self._steps = steps

    def _move(self, partial_match: PartialMatch | None, event: Event) -> tuple[list[PartialMatch], list[PartialMatch]]:
        first = len(self._steps)
        moved, completed = super()._move(partial_match, event)
        ended, self._steps[first:] = self._steps[first:], []
        before = positions_of(partial_match) if partial_match else ()
        taken = [p.taken[-1][0] for p in [*moved, *completed] if len(p.taken) > len(before)]
        self._steps.append(
            Moved(
                event=event.position,
                before=before,
                truths=tuple(sorted(self._truths.items())),
                takes=tuple(dict.fromkeys(taken)),
                ignores=any(len(p.taken) == len(before) for p in moved),
                completes=bool(completed),
                end=next((step.end for step in ended if isinstance(step, Ended)), None),
            )
        )
        return moved, completed

    def _record(self, partial_match: PartialMatch, end: End) -> None:
        super()._record(partial_match, end)
        self._steps.append(Ended(positions_of(partial_match), end))

    def _release(self, completed: list[PartialMatch], now: int | None) -> list[Match]:
        first = len(self._steps)
        matches = super()._release(completed, now)
        dropped, self._steps[first:] = self._steps[first:], []
        self._steps += [*(Emitted(match.taken, match.detected_at) for match in matches), *dropped]
        return matches

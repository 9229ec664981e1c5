"""Where a stage or a group may be `longest`: its loop must be unambiguous, and something must end it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cepheid.errors import Problem
from cepheid.lang.stages.pattern import Contiguity, Pattern, Stage


def longest_problems(stage: Stage, pattern: Pattern) -> Iterator[Problem]:
    """The problems of `longest` on a stage or group, if it has it."""
    if not stage.quantifier.longest or stage.contiguity.negated:
        return
    if stage.group:
        yield from longest_group_problems(stage, pattern)
    elif not _is_last(stage, pattern):
        yield Problem("longest is for the last stage only", stage.label)
    elif not _ends(stage, pattern):
        hint = "Add consecutive(), so that an event that does not match ends the loop, until(…) or within(…)."
        message = "longest without consecutive needs until or within: nothing else would end the loop"
        yield Problem(message, stage.label, hint=hint)


def longest_group_problems(stage: Stage, pattern: Pattern) -> Iterator[Problem]:
    """The problems of `longest` on a group."""
    if not _is_last(stage, pattern):
        yield Problem("longest is for the last stage only", stage.label)
        return
    if _ends_with_not(stage.group):
        hint = "Put another stage, one that is not optional, after it."
        message = "longest is not for a group that ends with a NOT: its last turn would never be certain"
        yield Problem(message, stage.label, hint=hint)
    if all(map(can_be_empty, stage.group)):
        hint = "Make a stage in it not optional."
        yield Problem("longest is not for a group that can match nothing", stage.label, hint=hint)
    else:
        for inner in dict.fromkeys(_turning_alike(stage)):
            hint = "Leave the outer or the inner loop out, or put another stage, one that is not optional, beside it."
            message = f"longest: where {inner.label} may go on, a new turn of the group may begin as well"
            yield Problem(message, stage.label, hint=hint)
    if not _ends(stage, pattern):
        hint = "Add until(…) or within(…); or make the group and all in it strict: next(…), consecutive()."
        message = "longest needs until or within where anything in the group may wait: nothing else would end the loop"
        yield Problem(message, stage.label, hint=hint)


def can_be_empty(stage: Stage) -> bool:
    """Whether a partial match can pass the stage without an event."""
    if stage.quantifier.optional or stage.contiguity.negated:
        return True
    return bool(stage.group) and all(map(can_be_empty, stage.group))


def _is_last(stage: Stage, pattern: Pattern) -> bool:
    return any(stage is last for last in pattern.stages[-1:])


def _ends_with_not(stages: Sequence[Stage]) -> bool:
    """Whether a NOT may be the last stage in a turn over the stages."""
    for stage in reversed(stages):
        if stage.contiguity.negated or _ends_with_not(stage.group):
            return True
        if not can_be_empty(stage):
            return False
    return False


def _turning_alike(group: Stage) -> Iterator[Stage]:
    """Loops without a fixed number of turns, inside a loop over a group, where the next event may begin a new turn of
    either loop.

    The same events could then be taken in two ways, and one may break while the other continues.
    """
    for outer in group.parts:
        if outer.group and outer.quantifier.loops:
            yield from (inner for stage in _alone(outer) for inner in _without_fixed_number(stage))


def _alone(group: Stage) -> Iterator[Stage]:
    """The stages that may be the only ones in a turn of the group."""
    return (stage for stage in group.group if all(can_be_empty(other) for other in group.group if other is not stage))


def _without_fixed_number(stage: Stage) -> Iterator[Stage]:
    """The stage and those that may be alone in it, if they are loops without a fixed number of turns."""
    if stage.quantifier.minimum != stage.quantifier.maximum:
        yield stage
    for inner in _alone(stage):
        yield from _without_fixed_number(inner)


def _ends(stage: Stage, pattern: Pattern) -> bool:
    """Whether something ends the loop of the stage or group before the input does."""
    quantifier, times = stage.quantifier, stage.quantifier.times
    if any((pattern.is_bounded, pattern.gap, stage.window, quantifier.window)):
        return True
    if stage.until is not None and not any(inner.group for inner in stage.group):  # it would not end inner groups
        return True
    exact = times is not None and times.minimum == times.maximum and not stage.group
    return exact or ((quantifier.consecutive or not quantifier.loops) and _is_strict(stage.group))


def _is_strict(stages: Sequence[Stage]) -> bool:
    """Whether an event that none of the stages takes always ends the partial match, once the first has an event."""
    waiting = (Contiguity.RELAXED, Contiguity.RELAXED_ANY)
    return all(stage.contiguity not in waiting for stage in stages[1:]) and all(
        (stage.quantifier.consecutive or not stage.quantifier.loops) and _is_strict(stage.group) for stage in stages
    )

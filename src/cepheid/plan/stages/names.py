"""What conditions see of the stages of a pattern, and the types that the stages ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cepheid.lang.stages.conditions import Subtype
from cepheid.lang.stages.pattern import Pattern, Stage
from cepheid.plan.conditions.names import Names


def names_of(pattern: Pattern) -> Names:
    """The names of the stages, and the least number of events that each has."""
    leaves = zip(pattern.leaves, _skippable(pattern.stages), strict=True)
    certain = (0 if skip or leaf.contiguity.negated else leaf.quantifier.minimum for leaf, skip in leaves)
    return Names(tuple(leaf.name for leaf in pattern.leaves), tuple(certain), len(pattern.leaves))


def always_one(pattern: Pattern) -> Iterator[bool]:
    """For each leaf, whether every match has exactly one event for it."""
    leaves = zip(pattern.leaves, _skippable(pattern.stages), _looping(pattern.stages), strict=True)
    return (not (skip or loops or leaf.contiguity.negated) for leaf, skip, loops in leaves)


def reached_without_events(pattern: Pattern) -> Iterator[bool]:
    """For each leaf, whether a partial match may come to it before it has taken an event."""
    reached = True
    for leaf, skip in zip(pattern.leaves, _skippable(pattern.stages), strict=True):
        yield reached
        reached = reached and (skip or leaf.contiguity.negated)


def starts_with_first(pattern: Pattern) -> bool:
    """Whether the event that starts a match always belongs to the first stage."""
    return not next(_skippable(pattern.stages))


def _skippable(stages: Sequence[Stage]) -> Iterator[bool]:
    """For each leaf, whether it or a group around it is optional."""
    for stage in stages:
        for optional in _skippable(stage.group) if stage.group else (False,):
            yield optional or stage.quantifier.optional


def _looping(stages: Sequence[Stage]) -> Iterator[bool]:
    """For each leaf, whether it or a group around it loops."""
    for stage in stages:
        for loops in _looping(stage.group) if stage.group else (False,):
            yield loops or stage.quantifier.loops


def asked_types(pattern: Pattern) -> list[tuple[str, str]]:
    """Each requested subtype: its place, and the type."""
    return [
        (f"{stage.label}, subtype", condition.type)
        for stage in pattern.leaves
        for condition in stage.conditions
        if isinstance(condition, Subtype)
    ]

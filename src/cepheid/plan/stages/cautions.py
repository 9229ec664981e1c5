"""Warnings about stages that work as in FlinkCEP, but perhaps not as intended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cepheid.lang.stages.parametric import given_length
from cepheid.lang.stages.pattern import Contiguity, Pattern, Stage
from cepheid.plan.stages.growth import compares


def cautions(pattern: Pattern) -> Iterator[str]:
    """One sentence per stage, with advice; the pattern has no problems."""
    yield from _first_events_only(pattern)
    if pattern.gap is None:
        yield from _windows_without_deadline(pattern, pattern.stages)


def _first_events_only(pattern: Pattern) -> Iterator[str]:
    """Stages after `followed_by` with whose event a later stage compares its own: only the first event that matches is
    ever compared.
    """
    leaves = pattern.leaves
    for number, leaf in enumerate(leaves):
        takes_first = number > 0 and leaf.contiguity is Contiguity.RELAXED and not leaf.quantifier.loops
        if not (takes_first and leaf.conditions):
            continue
        later = (other for other in leaves[number + 1 :] if not other.contiguity.negated)
        comparing = next((other for other in later if _compares(other, leaf)), None)
        if comparing is not None:
            yield (
                f"{leaf.label}: followed_by takes only the first event that matches, and {comparing.label} compares "
                f"its event with that one alone. Write followed_by_any({leaf.name!r}) to compare it with each of them."
            )


def _compares(stage: Stage, with_: Stage) -> bool:
    return any(compares(condition, {with_.name.lower()}) for condition in stage.conditions)


def _windows_without_deadline(pattern: Pattern, stages: tuple[Stage, ...]) -> Iterator[str]:
    """Stages with `within_previous` for which partial matches wait in the stage before, which has no such deadline."""
    taking = [stage for stage in stages if not stage.contiguity.negated]
    for before, stage in pairwise(taking):
        quantifier = before.quantifier
        waits_before = quantifier.optional or (quantifier.loops and quantifier.minimum != quantifier.maximum)
        if stage.window is not None and waits_before:
            how = "is optional" if quantifier.optional else "may go on"
            until = "until within ends" if pattern.is_bounded else "however long that takes"
            advice = f"Add max_gap({given_length(stage, 'window', stage.window)!r}) to the pattern."
            yield (
                f"{stage.label}: within_previous sets no deadline here, as {before.label} {how}, so partial matches "
                f"wait for the next event {until}. {advice}"
            )
    for stage in stages:
        yield from _windows_without_deadline(pattern, stage.group)

"""Patterns of stages as boxes: one for each stage, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cepheid.lang.pictures.box import Box
from cepheid.lang.stages.parametric import given_length, given_window
from cepheid.lang.stages.words import quantifier_parts, skip_text, without_parts, written_conditions

if TYPE_CHECKING:
    from cepheid.lang.stages.pattern import BeginWithout, Pattern, Stage


def picture_of(pattern: Pattern) -> Box:
    """The pattern as boxes. `begin_without` is the first of them."""
    before = () if pattern.without is None else (_before(pattern.without),)
    return Box(pattern.name, tuple(_whole(pattern)), (*before, *_row(pattern.stages, follows=bool(before))))


def _row(stages: Sequence[Stage], *, follows: bool = False) -> Iterator[Box]:
    """One box for each stage. `follows`: whether something comes before the first."""
    for number, stage in enumerate(stages):
        arrow = stage.contiguity.value.replace("_", " ") if number else "begin" if follows else None
        lines = (*quantifier_parts(stage), *written_conditions(stage))
        yield Box(stage.name or "group", lines, tuple(_row(stage.group)), arrow, stage.contiguity.negated)


def _before(without: BeginWithout) -> Box:
    return Box(without.name, tuple(without_parts(without)), forbids=True)


def _whole(pattern: Pattern) -> Iterator[str]:
    if (window := given_window(pattern)) is not None:
        yield f"within {window}"
    if pattern.gap is not None:
        yield f"each event less than {given_length(pattern, 'gap', pattern.gap)} after the one before it"
    if pattern.skip_strategy.to.value != "no_skip":
        yield f"skip {skip_text(pattern.skip_strategy)}"

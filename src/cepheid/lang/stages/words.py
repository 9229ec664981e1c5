"""What a pattern of stages says, in words: quantifiers, conditions, skip strategies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cepheid.lang.function import Function
from cepheid.lang.stages.conditions import Condition, Subtype
from cepheid.lang.stages.parametric import given_counts, given_length

if TYPE_CHECKING:
    from cepheid.lang.stages.pattern import BeginWithout, Quantifier, Skip, Stage


def quantifier_parts(stage: Stage) -> Iterator[str]:
    """How often the stage occurs, and its own windows; nothing for a stage that takes one event."""
    quantifier, unit = stage.quantifier, "time" if stage.group else "event"
    yield from _count(quantifier, unit)
    yield from (text for text, given in _flags(quantifier) if given)
    if quantifier.window is not None:
        yield f"each less than {given_length(quantifier, 'window', quantifier.window)} after the one before it"
    if stage.window is not None:
        after = "for" if stage.contiguity.negated else "less than"
        yield f"{after} {given_length(stage, 'window', stage.window)} after the event taken before"


def _count(quantifier: Quantifier, unit: str) -> Iterator[str]:
    counts = [1] if quantifier.times is None else given_counts(quantifier)
    if quantifier.maximum is None:
        yield f"{counts[0]} {_plural(counts[0], unit)} or more"
    elif len(counts) > 1:
        yield f"{counts[0]} to {counts[1]} {_plural(counts[1], unit)}"
    elif counts != [1]:
        yield f"{counts[0]} {_plural(counts[0], unit)}"


def _plural(count: int | str, unit: str) -> str:
    return unit if count == 1 else f"{unit}s"


def _flags(quantifier: Quantifier) -> tuple[tuple[str, bool], ...]:
    return (
        ("consecutive", quantifier.consecutive),
        ("all combinations", quantifier.combinations),
        ("greedy", quantifier.greedy),
        ("the longest loop only", quantifier.longest),
        ("optional", quantifier.optional),
    )


def written_conditions(stage: Stage) -> Iterator[str]:
    """The conditions of the stage itself as written, and its `until`."""
    for number, condition in enumerate(stage.conditions):
        alternative = not isinstance(condition, Subtype) and condition.alternative
        yield f"{'where' if number == 0 else 'or' if alternative else 'and'} {condition_text(condition)}"
    if not (stage.conditions or stage.group):
        yield "any event"
    if stage.until is not None:
        yield f"until {condition_text(stage.until)}"


def condition_text(condition: Condition | Subtype) -> str:
    if isinstance(condition, Condition) and condition.is_semantic:
        return f"semantic({condition.text!r})"
    function = condition.function if isinstance(condition, Condition) else None
    return condition.text if function is None else asked_text(function)


def asked_text(function: Function) -> str:
    return f"Python {function.name}({'event, matched' if function.iterative else 'event'})"


def without_parts(without: BeginWithout) -> Iterator[str]:
    """When the events of `begin_without` must not come, and which they are."""
    yield f"in the {given_length(without, 'window', without.window)} before the first event"
    yield "any event" if without.condition is None else f"where {condition_text(without.condition)}"


def skip_text(skip: Skip) -> str:
    if skip.stage is None:
        return skip.to.value
    return f"{skip.to.value} {skip.stage}{', an error where there is no such event' if skip.error_on_miss else ''}"

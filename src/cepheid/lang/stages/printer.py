"""Patterns → the calls that make them, as Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from cepheid.lang.calls import laid_out, quoted, shared_calls
from cepheid.lang.stages.conditions import Condition, Subtype
from cepheid.lang.stages.parametric import given_counts, given_length, given_window

if TYPE_CHECKING:
    from cepheid.lang.stages.pattern import BeginWithout, Pattern, Quantifier, Skip, Stage


def calls_text(pattern: Pattern) -> str:
    """The calls that make the pattern. A function is shown by its name, knowledge by its size."""
    return laid_out([*_sequence(pattern.stages, _head(pattern)), *_whole(pattern)])


def _head(pattern: Pattern) -> str:
    """The arguments of `begin` after the stage."""
    given = [f"name={quoted(pattern.name)}"] if pattern.name != "pattern" else []
    if pattern.version is not None:
        given.append(f"version={quoted(pattern.version)}")
    if pattern.knowledge is not None:
        given += [f"knowledge={pattern.knowledge!r}", f"mapping={pattern.mapping!r}"]
    return "".join(f", {argument}" for argument in given)


def _sequence(stages: Sequence[Stage], head: str = "") -> Iterator[str]:
    """The call that adds each stage, with those about it."""
    for number, stage in enumerate(stages):
        added = "".join(_sequence(stage.group)) if stage.group else quoted(stage.name)
        call = f".{stage.contiguity.value}({added})" if number else f"Pattern.begin({added}{head})"
        yield call + "".join(f".{call}" for call in _stage_calls(stage))


def _stage_calls(stage: Stage) -> Iterator[str]:
    for condition in stage.conditions:
        if isinstance(condition, Subtype):
            yield f"subtype({quoted(condition.type)})"
        else:
            yield f"{'or_where' if condition.alternative else 'where'}({_condition(condition)})"
    yield from _quantifier_calls(stage.quantifier)
    if stage.until is not None:
        yield f"until({_condition(stage.until)})"
    if stage.window is not None:
        yield f"within_previous({quoted(given_length(stage, 'window', stage.window))})"


def _condition(condition: Condition) -> str:
    if condition.function is not None:
        return condition.text
    return f"semantic({quoted(condition.text)})" if condition.is_semantic else quoted(condition.text)


def _quantifier_calls(quantifier: Quantifier) -> Iterator[str]:
    times = quantifier.times
    if times is not None:
        given = given_counts(quantifier)
        counts = [] if times.maximum is None and given == [1] else list(map(_count, given))
        call = "one_or_more" if not counts else "times" if times.maximum is not None else "times_or_more"
        window = []
        if quantifier.window is not None:
            window = [f"window={quoted(given_length(quantifier, 'window', quantifier.window))}"]
        yield f"{call}({', '.join([*counts, *window])})"
    if quantifier.combinations:
        yield "allow_combinations()"
    yield from (f"{flag}()" for flag in ("optional", "greedy", "consecutive", "longest") if getattr(quantifier, flag))


def _count(count: int | str) -> str:
    return quoted(count) if isinstance(count, str) else str(count)


def _whole(pattern: Pattern) -> Iterator[str]:
    """The calls about the whole pattern."""
    if pattern.without is not None:
        yield f".begin_without({', '.join(_without_arguments(pattern.without))})"
    if (window := given_window(pattern)) is not None:
        yield f".within({quoted(window)})"
    if pattern.gap is not None:
        yield f".max_gap({quoted(given_length(pattern, 'gap', pattern.gap))})"
    if pattern.skip_strategy.to.value != "no_skip":
        yield f".skip({_skip(pattern.skip_strategy)})"
    yield from shared_calls(pattern)


def _without_arguments(without: BeginWithout) -> Iterator[str]:
    yield quoted(without.name)
    yield f"within={quoted(given_length(without, 'window', without.window))}"
    if without.condition is not None:
        yield f"where={_condition(without.condition)}"


def _skip(skip: Skip) -> str:
    stage = () if skip.stage is None else (quoted(skip.stage),)
    missed = ("error_on_miss=True",) if skip.error_on_miss else ()
    return f"Skip.{skip.to.value}({', '.join(chain(stage, missed))})"

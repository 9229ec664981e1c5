"""Problems of a pattern that do not depend on events: names, quantifiers, windows, NOT stages, groups, skipping.

The fluent interface refuses a call only if no later call could correct it. Everything else is found here, so the order
of the calls on a stage does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise

from cepheid.errors import Problem, did_you_mean
from cepheid.lang.duration import format_duration
from cepheid.lang.stages.pattern import Contiguity, Pattern, Quantifier, SkipTo, Stage, Times
from cepheid.plan.reserved import RESERVED
from cepheid.plan.stages.longest import can_be_empty, longest_problems

MAX_TURNS = 5_000
"""The most turns of all stages together; times(n) has n turns."""


def pattern_problems(pattern: Pattern, columns: Sequence[str]) -> list[Problem]:
    """All problems of the pattern itself; `columns` are the names of the events' columns, as far as known.

    A problem's `where` is the label of a stage, `within` or `skip`.
    """
    problems = [*_size_problems(pattern), *_window_problems(pattern), *_name_problems(pattern, columns)]
    problems += [*_order_problems(pattern.stages), *_function_problems(pattern)]
    for stage in _parts(pattern):
        problems += _order_problems(stage.group)
        problems += _not_problems(stage) if stage.contiguity.negated else _quantifier_problems(stage)
        problems += longest_problems(stage, pattern)
    return [*problems, *_last_not_problems(pattern), *_skip_problems(pattern)]


def problems_without_time(pattern: Pattern) -> list[Problem]:
    """A problem for every window: processing order has no event times."""
    hint = "Name the column of event times with time=…, or take the window away."
    places = _windows(pattern) + ([] if pattern.without is None else [pattern.without.label])
    return [Problem("a window needs event times, and none are named", place, hint=hint) for place in places]


def problems_of_outputs(pattern: Pattern, outputs: Sequence[str] | None, *, named: bool) -> list[Problem]:
    """A problem if only timeouts, or only what a negation ends, are requested and there are none. `named`: of several
    patterns.
    """
    end = ", or ask for matches too" + (", or leave this pattern out." if named else ".")
    wanted = set(outputs or ())
    if wanted == {"timeouts"} and not _windows(pattern):
        hint = "Add within(…) or max_gap(…), or within_previous(…) to a stage" + end
        return [Problem("timeouts alone are asked for, and without a window there are none", "outputs", hint=hint)]
    if wanted == {"no_match"} and not any(leaf.contiguity.negated for leaf in pattern.leaves):
        hint = "Add not_followed_by(…) or not_next(…)" + end
        return [Problem("no_match alone is asked for, and without a negation there is none", "outputs", hint=hint)]
    return []


def _windows(pattern: Pattern) -> list[str]:
    """The places where the pattern has windows."""
    places = ["within"] * pattern.is_bounded + ["max_gap"] * (pattern.gap is not None)
    parts = [part for part in _parts(pattern) if part.window is not None or part.quantifier.window is not None]
    return places + [part.label for part in parts]


def _parts(pattern: Pattern) -> list[Stage]:
    """Every stage and group, each group before its own stages."""
    return [part for stage in pattern.stages for part in stage.parts]


# Size


def _size_problems(pattern: Pattern) -> Iterator[Problem]:
    states = sum(map(_turns, pattern.stages))
    if states > MAX_TURNS:
        message = f"the pattern would have {states:,} states, at most {MAX_TURNS:,} are possible"
        yield Problem(message, hint="Every turn of times(…) is a state: use one_or_more() and count(stage) instead.")


def _turns(stage: Stage) -> int:
    turns = stage.quantifier.maximum or stage.quantifier.minimum
    return turns * (sum(map(_turns, stage.group)) if stage.group else 1)


# Functions


def _function_problems(pattern: Pattern) -> Iterator[Problem]:
    """Problems of names that two different functions have: such a name would not distinguish patterns."""
    known: dict[str, object] = {}
    for label, function in pattern.functions:
        if known.setdefault(function.name, function.call) != function.call:
            hint = f'Give one of them another name: where(f, name="{function.name} 2").'
            yield Problem(f"two functions are named {function.name!r}", label, hint=hint)


# Windows


def _window_problems(pattern: Pattern) -> Iterator[Problem]:
    if pattern.window is not None and pattern.window <= timedelta(0):
        yield Problem(f"within must be longer than zero, got {pattern.window}")
    if pattern.gap is not None and pattern.gap <= timedelta(0):
        yield Problem(f"max_gap must be longer than zero, got {pattern.gap}")
    if pattern.without is not None and pattern.without.window <= timedelta(0):
        yield Problem(f"within must be longer than zero, got {pattern.without.window}", pattern.without.label)
    for stage in _parts(pattern):
        for what, length in (("within_previous", stage.window), ("the loop's window", stage.quantifier.window)):
            if length is not None and length <= timedelta(0):
                yield Problem(f"{what} must be longer than zero, got {length}", stage.label)
            elif length is not None and pattern.window is not None and length > pattern.window > timedelta(0):
                longer = f"{what} is longer than within: {format_duration(length)}, {format_duration(pattern.window)}"
                hint = "An event so late would be after the end of the match: make it shorter, or leave it out."
                yield Problem(longer, stage.label, hint=hint)


# Names


def _name_problems(pattern: Pattern, columns: Sequence[str]) -> Iterator[Problem]:
    seen = set()
    taken = {c.lower(): f"a column of the events ({c!r})" for c in columns}
    taken |= dict.fromkeys(RESERVED, "a column of the output")
    for stage in pattern.leaves:
        name = stage.name.lower()
        if name in seen:
            yield Problem(f"two stages are named {stage.name!r}", hint="Every stage needs a name of its own.")
        elif name in taken:
            hint = "Case does not count; choose another name for the stage."
            yield Problem(f"stage {stage.name!r} has the name of {taken[name]}", hint=hint)
        seen.add(name)
    if pattern.without is not None and pattern.without.name.lower() in seen:
        hint = "It takes no event of the match: give it a name of its own."
        yield Problem(f"a stage is named {pattern.without.name!r}, too", pattern.without.label, hint=hint)


# NOT stages


def _order_problems(stages: Sequence[Stage]) -> Iterator[Problem]:
    """Problems of stages that are not possible at their place in a pattern or group."""
    if stages and stages[0].contiguity.negated:
        call = stages[0].contiguity.value
        hint = "Begin with the stage after which no such event may come."
        yield Problem(f"{call} cannot be the first stage", stages[0].label, hint=hint)
    for before, stage in pairwise(stages):
        if stage.contiguity.negated and before.quantifier.optional:
            message = f"{stage.contiguity.value} cannot follow the optional {before.label}"
            hint = "Use two patterns: one with the optional stage, not optional there, and one without it."
            yield Problem(message, stage.label, hint=hint)


def _not_problems(stage: Stage) -> Iterator[Problem]:
    calls = [*_quantifier_calls(stage.quantifier), *(["until"] if stage.until is not None else [])]
    if calls:
        message = f"{stage.contiguity.value} takes no event, so it cannot have {', '.join(calls)}"
        yield Problem(message, stage.label, hint="Leave that out.")


def _quantifier_calls(quantifier: Quantifier) -> Iterator[str]:
    if quantifier.times is not None:
        yield _times_call(quantifier.times)
    for call, given in (
        ("optional", quantifier.optional),
        ("greedy", quantifier.greedy),
        ("consecutive", quantifier.consecutive),
        ("allow_combinations", quantifier.combinations),
        ("longest", quantifier.longest),
    ):
        if given:
            yield call


def _times_call(times: Times) -> str:
    if times.maximum is not None:
        return "times"
    return "one_or_more" if times.minimum == 1 else "times_or_more"


def _last_not_problems(pattern: Pattern) -> Iterator[Problem]:
    last = pattern.stages[-1] if pattern.stages else None
    while last is not None and last.group:
        last = last.group[-1]
    if last is None or last.contiguity is not Contiguity.NOT_FOLLOWED_BY:
        return
    if not pattern.is_bounded and pattern.gap is None and last.window is None:
        hint = "Add within(…) or, to count from the event before it, max_gap(…) or within_previous(…)."
        message = "not_followed_by as the last stage needs within: until when may no such event come?"
        yield Problem(message, last.label, hint=hint)


# Quantifiers


def _quantifier_problems(stage: Stage) -> Iterator[Problem]:
    quantifier = stage.quantifier
    for call, given in (
        ("greedy", quantifier.greedy),
        ("consecutive", quantifier.consecutive),
        ("allow_combinations", quantifier.combinations),
        ("longest", quantifier.longest),
        ("a loop's window", quantifier.window is not None),
    ):
        if given and quantifier.times is None:
            hint = f"Add one_or_more() or times(…) to the {'group' if stage.group else 'stage'}."
            yield Problem(f"{call} needs a loop", stage.label, hint=hint)
    if stage.until is not None and quantifier.maximum is not None:
        hint = "Add one_or_more() or times_or_more(…), or leave until out."
        yield Problem("until needs a loop without a largest number of events", stage.label, hint=hint)
    if quantifier.greedy and stage.group:
        yield Problem("greedy is not for groups", stage.label, hint="Make loops in the group greedy.")
    yield from _excluded(stage)
    if stage.group and quantifier.maximum is None and all(map(can_be_empty, stage.group)):
        hint = "Make a stage in it not optional, or say how often: times(…)."
        yield Problem("a loop over a group that can match nothing would never end", stage.label, hint=hint)


def _excluded(stage: Stage) -> Iterator[Problem]:
    """Problems of allow_combinations with calls that it excludes."""
    quantifier = stage.quantifier
    if not quantifier.combinations:
        return
    for call, given, why in (
        ("consecutive", quantifier.consecutive, "consecutive skips no event"),
        ("greedy", quantifier.greedy, "greedy takes every event that it can"),
        ("longest", quantifier.longest, "longest gives one loop"),
    ):
        if given:
            hint = f"allow_combinations also skips events that match, {why}: choose one."
            yield Problem(f"{call} and allow_combinations exclude each other", stage.label, hint=hint)


# The skip strategy


def _skip_problems(pattern: Pattern) -> Iterator[Problem]:
    skip = pattern.skip_strategy
    if skip.to not in (SkipTo.FIRST, SkipTo.LAST):
        return
    # A stage that takes no event is never found, as in FlinkCEP.
    names = [leaf.name for leaf in pattern.leaves]
    if skip.stage not in names:
        hint = did_you_mean(str(skip.stage), names)
        yield Problem(f"{skip.to.value}: no stage named {skip.stage!r}", "skip", hint=hint)

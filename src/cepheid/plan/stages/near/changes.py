"""Makes the patterns with one change, which leaves out a condition, a NOT, an `until` or `begin_without`, makes a
window or a gap longer, makes strict contiguity relaxed, or lets a loop take fewer or more events. A start that matches
a changed pattern, but not the pattern itself, is a near miss.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from cepheid.errors import with_noun
from cepheid.lang.duration import LONGEST, format_duration
from cepheid.lang.numbered import with_numbers
from cepheid.lang.parameters import NAME
from cepheid.lang.stages.conditions import Condition
from cepheid.lang.stages.pattern import Contiguity, Pattern, Skip, SkipTo, Stage, Times
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.stages.build import check_pattern
from cepheid.plan.stages.names import always_one, reached_without_events
from cepheid.plan.stages.near.conjuncts import conjuncts_of, without
from cepheid.plan.stages.parameters import with_values

LONGER = 10
"""How many times as long a window or a gap is tried."""


class Kind(StrEnum):
    """What is changed."""

    CONDITION = "condition"
    WITHIN = "within"
    """The window of the whole pattern."""
    GAP = "gap"
    """The time from an event to the next: `max_gap`, `within_previous` or the window of a loop."""
    NOT = "not"
    BEGIN_WITHOUT = "begin_without"
    CONTIGUITY = "contiguity"
    UNTIL = "until"
    FEWER = "fewer"
    """A loop is complete with one event or turn."""
    MORE = "more"
    """A loop may take any number of events or turns."""


@dataclass(frozen=True)
class Change:
    """One change of a pattern."""

    kind: Kind
    text: str
    """What is changed, in words. No two changes of a pattern have the same text."""
    pattern: Pattern
    """With the change."""
    stages: range
    """The numbers of the stages that it concerns, in the unchanged pattern: one stage, those of a group, or all."""
    in_loop: bool = False
    """Whether it is about what may lie between two events of a loop; otherwise it is about what may lie before the
    first event of a stage.
    """
    conjunct: int | None = None
    """The number of the conjunct that is left out."""
    length: timedelta | None = None
    """The window or the gap without the change."""
    count: int | None = None
    """The least or the largest number of events or turns without the change."""
    until: int | None = None
    """The number of the `until` that is left out, in `Pattern.loops_until`."""


@dataclass(frozen=True)
class _Changed:
    """A change within some stages, and what these become."""

    kind: Kind
    text: str
    first: int
    """The number of the changed stage, for a group that of its first one."""
    changed: Stage
    becomes: tuple[Stage, ...]
    """What replaces the changed stage; once the change is complete, what replaces all stages of the pattern."""
    in_loop: bool = False
    conjunct: int | None = None
    length: timedelta | None = None
    count: int | None = None


def changes_of(pattern: Pattern) -> tuple[Change, ...]:
    """All changes of the pattern that give a valid one."""
    pattern = _settled(pattern)
    every = [one for one in (*_of_stages(pattern), *_of_whole(pattern)) if not _does_nothing(one, pattern)]
    used = [replace(one, pattern=_with_used_parameters(one.pattern)) for one in every]
    return _told_apart([one for one in used if not check_pattern(one.pattern)])


def untried_of(pattern: Pattern) -> dict[str, str]:
    """The changes that are not made, in words, each with the reason."""
    if pattern.calendar is None or pattern.leaves[-1].contiguity.negated:
        return {}
    return {f"within longer than {pattern.calendar}": "as windows of the calendar are not changed"}


def _told_apart(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes, each with a text of its own: where texts are the same, the number of the condition that is left out
    or of the stage is added. Those of a group that is alone in another group are numbered from outside.
    """
    same = Counter(change.text for change in changes)
    named = [replace(one, text=_text_of_one(one)) if same[one.text] > 1 else one for one in changes]
    texts = with_numbers([one.text for one in named])
    return tuple(replace(one, text=text) for one, text in zip(named, texts, strict=True))


def _text_of_one(change: Change) -> str:
    which = f"stage {change.stages.start + 1}" if change.conjunct is None else f"condition {change.conjunct + 1}"
    return f"{change.text} ({which})"


def without_skipping(pattern: Pattern, *, complete: bool) -> Pattern:
    """The pattern without its skip strategy. If the input is `complete`, a start has one match at most, the first one
    that is completed. Otherwise it has all its matches. With `longest` it has them in both cases, as `longest` may
    decide whether a start matches: it does not while its loop is below the minimum.
    """
    return pattern.skip(Skip.no_skip() if not complete or grows(pattern) else Skip.to_next())


def grows(pattern: Pattern) -> bool:
    """Whether a loop of the pattern is `longest`, so that a match may wait for partial matches that continue it."""
    return any(stage.quantifier.longest for stage in pattern.stages)


def may_lose_starts(pattern: Pattern, *, complete: bool) -> bool:
    """Whether the pattern's skip strategy may drop or hold back all matches of a start."""
    harmless = (SkipTo.NO_SKIP, SkipTo.NEXT) if complete else (SkipTo.NO_SKIP,)
    return pattern.skip_strategy.to not in harmless


def loses_overlapping(pattern: Pattern, *, complete: bool) -> bool:
    """Whether the skip strategy drops exactly the starts within the match of an earlier start: those are the first
    matches that are completed, as without skipping.
    """
    return complete and pattern.skip_strategy.to is SkipTo.PAST_LAST_EVENT and not grows(pattern)


def without_error(pattern: Pattern) -> Pattern:
    """The pattern with a skip strategy that does not fail where there is nothing to skip to."""
    return replace(pattern, skip_strategy=replace(pattern.skip_strategy, error_on_miss=False))


def _of_stages(pattern: Pattern) -> Iterator[Change]:
    only_first, at_start = next(always_one(pattern)), [*reached_without_events(pattern)]
    may_forbid_start = any(at_start[n] and leaf.contiguity.negated for n, leaf in enumerate(pattern.leaves))
    for one in _in_sequence(pattern.stages, 0, pattern.window):
        if one.kind is Kind.CONDITION and one.first == 0 and only_first:
            continue  # without the condition, other events would be starts
        if one.kind is Kind.NOT and at_start[one.first]:
            continue  # without the NOT, too
        if one.kind in (Kind.UNTIL, Kind.FEWER, Kind.MORE) and may_forbid_start:
            continue  # an event that is forbidden is a start all the same if it completes a match at once
        changed, stages = replace(pattern, stages=one.becomes), range(one.first, one.first + len(one.changed.leaves))
        until = next((n for n, loop in enumerate(pattern.loops_until) if loop is one.changed), None)
        yield Change(
            one.kind,
            one.text,
            changed,
            stages,
            in_loop=one.in_loop,
            conjunct=one.conjunct,
            length=one.length,
            count=one.count,
            until=until if one.kind is Kind.UNTIL else None,
        )


def _does_nothing(change: Change, pattern: Pattern) -> bool:
    """Whether the change cannot give a match: it is about later events of the last loop, which needs one event; or the
    last loop, which is a match with fewer events, may take more.
    """
    last = pattern.stages[-1]
    needs_one = last.quantifier.minimum == 1 and not last.group
    is_last = change.stages.stop == len(pattern.leaves)
    return is_last and ((change.in_loop and needs_one) or (change.kind is Kind.MORE and not last.group))


def _of_whole(pattern: Pattern) -> Iterator[Change]:
    """The changes without `begin_without`, and with a longer window or gap of the whole pattern. The latter are not
    made where a NOT ends the pattern, as it would have to hold longer.
    """
    every = range(len(pattern.leaves))
    if pattern.without is not None:
        changed = replace(pattern, without=None)
        yield Change(Kind.BEGIN_WITHOUT, f"without begin_without {pattern.without.name}", changed, every)
    if pattern.leaves[-1].contiguity.negated:
        return
    if pattern.window is not None:
        changed = replace(pattern, window=_longer(pattern.window))
        yield Change(Kind.WITHIN, _longer_text("within", pattern.window), changed, every, length=pattern.window)
    if pattern.gap is not None:
        changed = replace(pattern, gap=_longer(pattern.gap))
        yield Change(Kind.GAP, _longer_text("max_gap", pattern.gap), changed, every, length=pattern.gap)


def _in_sequence(stages: Sequence[Stage], first: int, window: timedelta | None) -> Iterator[_Changed]:
    """The changes of the stages, of which the first leaf has the number `first`; `window` is that of the pattern."""
    number = first
    for place, stage in enumerate(stages):
        for one in (*_of_stage(stage, number, window, begins=place == 0), *_in_group(stage, number, window)):
            yield replace(one, becomes=(*stages[:place], *one.becomes, *stages[place + 1 :]))
        number += len(stage.leaves)


def _in_group(stage: Stage, number: int, window: timedelta | None) -> Iterator[_Changed]:
    for one in _in_sequence(stage.group, number, window):
        yield replace(one, becomes=(replace(stage, group=one.becomes),))


def _of_stage(stage: Stage, number: int, window: timedelta | None, *, begins: bool) -> Iterator[_Changed]:
    if stage.contiguity.negated:
        yield _Changed(Kind.NOT, f"without {stage.contiguity.value} {stage.name}", number, stage, ())
        return
    yield from _of_conditions(stage, number)
    yield from _of_loop(stage, number)
    if stage.contiguity is Contiguity.STRICT and not begins:
        changed = replace(stage, contiguity=Contiguity.RELAXED)
        text = f"{_named(stage)}: followed_by in place of next"
        yield _Changed(Kind.CONTIGUITY, text, number, stage, (changed,))
    if stage.quantifier.consecutive:
        changed = replace(stage, quantifier=replace(stage.quantifier, consecutive=False))
        yield _Changed(Kind.CONTIGUITY, f"{_named(stage)}: not consecutive", number, stage, (changed,), in_loop=True)
    yield from _of_gaps(stage, number, window)


def _of_conditions(stage: Stage, number: int) -> Iterator[_Changed]:
    for place, conjunct in enumerate(conjuncts_of(stage.conditions)):
        changed = replace(stage, conditions=without(stage.conditions, conjunct))
        text = f"{_named(stage)}: without {' '.join(conjunct.text.split())}"
        yield _Changed(Kind.CONDITION, text, number, stage, (changed,), conjunct=place)


def _of_loop(stage: Stage, number: int) -> Iterator[_Changed]:
    """The changes without `until`, and with fewer or more events or turns."""
    quantifier, what = stage.quantifier, "turn" if stage.group else "event"
    if stage.until is not None:
        changed = replace(stage, until=None)
        yield _Changed(Kind.UNTIL, f"{_named(stage)}: without until", number, stage, (changed,))
    least, most = quantifier.minimum, quantifier.maximum
    if least > 1:
        changed = replace(stage, quantifier=replace(quantifier, times=Times(1, most)))
        text = f"{_named(stage)}: fewer than {with_noun(least, what)}"
        yield _Changed(Kind.FEWER, text, number, stage, (changed,), count=least)
    if most is not None and most > 1:
        changed = replace(stage, quantifier=replace(quantifier, times=Times(least, None)))
        text = f"{_named(stage)}: more than {with_noun(most, what)}"
        yield _Changed(Kind.MORE, text, number, stage, (changed,), count=most)


def _of_gaps(stage: Stage, number: int, window: timedelta | None) -> Iterator[_Changed]:
    most = LONGEST if window is None else window
    length = stage.window
    if length is not None and (longer := min(_longer(length), most)) > length:
        text = f"{_named(stage)}: {_longer_text('within_previous', length)}"
        yield _Changed(Kind.GAP, text, number, stage, (replace(stage, window=longer),), length=length)
    length = stage.quantifier.window
    if length is not None and (longer := min(_longer(length), most)) > length:
        changed = replace(stage, quantifier=replace(stage.quantifier, window=longer))
        text = f"{_named(stage)}: {_longer_text('window of the loop', length)}"
        yield _Changed(Kind.GAP, text, number, stage, (changed,), in_loop=True, length=length)


def _longer(length: timedelta) -> timedelta:
    return length * LONGER if length < LONGEST / LONGER else LONGEST


def _longer_text(call: str, length: timedelta) -> str:
    return f"{call} longer than {format_duration(length)}"


def _named(stage: Stage) -> str:
    return stage.name or stage.label


def _settled(pattern: Pattern) -> Pattern:
    """The pattern with its lengths and counts as values, where parameters give them."""
    pattern = with_values(pattern, Parameters(pattern.parameters), [])
    without_ = None if pattern.without is None else replace(pattern.without, parametric=())
    return replace(pattern, stages=tuple(map(_settled_stage, pattern.stages)), without=without_, parametric=())


def _settled_stage(stage: Stage) -> Stage:
    quantifier, group = replace(stage.quantifier, parametric=()), tuple(map(_settled_stage, stage.group))
    return replace(stage, quantifier=quantifier, group=group, parametric=())


def _with_used_parameters(pattern: Pattern) -> Pattern:
    """The pattern with the parameters that its texts still name; others would be refused."""
    parts = [part for stage in pattern.stages for part in stage.parts]
    conditions = [one for part in parts for one in (*part.conditions, part.until)]
    conditions.append(None if pattern.without is None else pattern.without.condition)
    texts = [one.text for one in conditions if isinstance(one, Condition) and one.function is None]
    used = {name for text in texts for name in re.findall(rf"\$({NAME})", text)}
    return replace(pattern, parameters=tuple(one for one in pattern.parameters if one.name in used))

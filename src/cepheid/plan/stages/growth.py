"""Which patterns can store more and more partial matches, and what would bound them.

Every event may start a partial match, so their number is bounded only if each of them ends. A partial match ends by
time (`within`, `max_gap`, a window of its stage), by an event that does not match where the pattern is strict, or by
completing. Nothing is known here about the events: a stage with a condition may wait for ever, and one without takes
the next event.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cepheid.lang.sql.tokens import Kind, Token, tokenize
from cepheid.lang.stages.conditions import Condition, Subtype
from cepheid.lang.stages.pattern import Contiguity, Pattern, SkipTo, Stage

_WAITS = "partial matches wait for it until an event matches, however long that takes"
_WAITS_FOR_EVER = (
    "partial matches wait for it for ever, as followed_by_any lets them wait on after an event has matched"
)
_COMBINATIONS = "each event that its loop could take doubles the partial matches in it"
_NEVER_ENDS = "partial matches stay in its loop for ever, as no event ends it"
_GAPS = "partial matches wait in its loop until the next event matches, however long that takes"
_RUN = "partial matches stay in its loop for as long as events match, and each of these may start another"

_WITHIN_OR_PREVIOUS = "Add within(…), or within_previous(…) to this stage"
_WITHIN_OR_UNTIL = "Add within(…), or until(…) to this stage"
_VARIABLE = re.compile(r"\?(\w+)")
"""A variable in a semantic filter."""

_SKIP = "; or a skip strategy, which drops them once a match is emitted"


def growth_warnings(pattern: Pattern) -> tuple[str, ...]:
    """Why the number of partial matches of one key can grow without bound: one sentence per cause, with its stage and
    advice. Empty if it cannot. The pattern has no other problems.
    """
    if pattern.is_bounded:
        return ()
    return tuple(_warnings(pattern.stages, _Whole(pattern), bounded=pattern.gap is not None))


@dataclass(frozen=True)
class _Whole:
    """What the warnings of a stage depend on, apart from the stage."""

    pattern: Pattern

    @property
    def skips(self) -> bool:
        return self.pattern.skip_strategy.to is not SkipTo.NO_SKIP

    def drops_at_once(self, stage: Stage) -> bool:
        """Whether every turn of the stage's loop completes a match, which ends the partial match."""
        last = stage is self.pattern.stages[-1] and not stage.quantifier.longest
        return last and self.pattern.skip_strategy.to in (SkipTo.NEXT, SkipTo.PAST_LAST_EVENT)

    def compares(self, stage: Stage) -> bool:
        """Whether a condition in the stage may look at other events. One partial match may then take an event that
        another does not take.
        """
        names = {leaf.name.lower() for leaf in self.pattern.leaves}
        return any(
            compares(condition, names - {leaf.name.lower()} if _is_semantic(condition) else names)
            for leaf in stage.leaves
            for condition in leaf.conditions
        )


def _is_semantic(condition: Condition | Subtype) -> bool:
    """Whether the condition is a semantic filter, in which the name of its own stage is the current event."""
    return isinstance(condition, Condition) and condition.is_semantic


def compares(condition: Condition | Subtype, stages: Collection[str]) -> bool:
    """Whether the condition refers to one of the stages, whose names are in lower case."""
    if isinstance(condition, Subtype):
        return False
    if condition.function is not None:
        return condition.function.iterative
    if condition.is_semantic:
        return any(name.lower() in stages for name in _VARIABLE.findall(condition.text))
    tokens = [Token(Kind.SYMBOL, "", 0, 0), *tokenize(condition.text)]
    return any(
        token.kind in (Kind.WORD, Kind.QUOTED)
        and token.text.lower() in stages
        and before.text != "."  # otherwise it is a field
        and after.text != "("  # otherwise it is a function
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _warnings(stages: Sequence[Stage], whole: _Whole, *, bounded: bool) -> Iterator[str]:
    """Warnings for the stages of a pattern or a group. `bounded`: something around them bounds every gap."""
    for number, stage in enumerate(stages):
        if stage.contiguity.negated:
            continue  # the stage after it waits; as the last stage it has a window
        timed = bounded or stage.window is not None
        # No partial match waits for the first stage of the pattern. For the first stage of a group, the group waits.
        causes = [] if timed or number == 0 else [*_waiting(stage, whole)]
        causes += _looping(stage, whole, timed=timed or stage.quantifier.window is not None)
        for why, advice in causes:
            yield f"{stage.label}: {why}, so their number can grow without bound. {advice}."
        yield from _warnings(stage.group, whole, bounded=timed)


def _waiting(stage: Stage, whole: _Whole) -> Iterator[tuple[str, str]]:
    if stage.contiguity is Contiguity.RELAXED_ANY:
        yield _WAITS_FOR_EVER, _WITHIN_OR_PREVIOUS + ("" if whole.skips else _SKIP)
    elif stage.contiguity is Contiguity.RELAXED and any(leaf.conditions for leaf in stage.leaves):
        yield _WAITS, _WITHIN_OR_PREVIOUS


def _looping(stage: Stage, whole: _Whole, *, timed: bool) -> Iterator[tuple[str, str]]:
    quantifier = stage.quantifier
    if not quantifier.loops or stage.until is not None:
        return
    skip = "" if whole.skips else _SKIP
    # If a match ends the loop as soon as it is complete, the loop is never longer than its minimum.
    ended = whole.drops_at_once(stage)
    endless = quantifier.maximum is None and not ended
    advice = _WITHIN_OR_UNTIL if quantifier.maximum is None else _WITHIN_OR_PREVIOUS
    if quantifier.combinations and (endless or not (timed or ended)):
        yield _COMBINATIONS, advice + skip
    elif endless and (quantifier.consecutive or timed):
        yield _RUN, advice
    elif endless:
        yield _NEVER_ENDS, advice + skip
    elif not (quantifier.consecutive or timed) and whole.compares(stage):
        # Otherwise all partial matches take any event that one of them takes, so they are soon complete.
        yield _GAPS, advice

"""What a pattern of stages does at each kind of event, in words: rows to be read, which nothing depends on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cepheid.compile.stages.automaton import Action, build_automaton
from cepheid.compile.step_in_words import StepInWords
from cepheid.lang.duration import format_duration
from cepheid.lang.stages.conditions import Condition, Subtype
from cepheid.lang.stages.parametric import given_window
from cepheid.lang.stages.pattern import Pattern, Stage


def steps_in_words(pattern: Pattern) -> Iterator[StepInWords]:
    """The steps in the order of stages; deadlines come last."""
    leaves, starting = pattern.leaves, _starting(pattern)
    for number, leaf in enumerate(leaves):
        event, activating = _text(leaf.conditions), number in starting
        if leaf.contiguity.negated:
            action = "ends the partial match without a match"
        else:
            action = f"{'starts a partial match' if activating else 'is taken'}{_how_often(leaf)}; then it "
            action += _awaited(leaves[number + 1 :])
        yield StepInWords(leaf.name, event, activating, action)
    for loop in pattern.loops_until:
        assert loop.until is not None
        yield StepInWords(loop.name or loop.label, loop.until.text, activating=False, action="ends the loop")
    if (without := pattern.without) is not None:
        event = "any" if without.condition is None else without.condition.text
        action = f"for {format_duration(without.window)} no event starts a partial match"
        yield StepInWords(without.name, event, activating=False, action=action)
    yield from _deadlines(pattern)


def _starting(pattern: Pattern) -> set[int]:
    """The stages that may take the first event of a match."""
    automaton = build_automaton(pattern)
    states = [automaton.start]
    for state in states:
        states += [edge.target for edge in automaton.states[state].edges if edge.action is Action.PROCEED]
    edges = [edge for state in states for edge in automaton.states[state].edges]
    return {edge.stage for edge in edges if edge.stage is not None}


def _how_often(leaf: Stage) -> str:
    often = leaf.quantifier
    optional = ", or not at all" if often.optional else ""
    if not often.loops:
        return optional
    most = f"{often.minimum} or more" if often.maximum is None else f"{often.minimum} to {often.maximum}"
    return f", {most} times{optional}"


def _awaited(following: Sequence[Stage]) -> str:
    """What a partial match does after an event, by the stages that follow."""
    positive = next((stage.name for stage in following if not stage.contiguity.negated), None)
    if positive is not None:
        return f"waits for {positive!r}"
    if following:
        return f"waits until its time has passed without {following[0].name!r}"
    return "is a match"


def _deadlines(pattern: Pattern) -> Iterator[StepInWords]:
    last = pattern.leaves[-1]
    absent = last.contiguity.negated
    action = "ends the partial match as a timeout"
    if absent:
        action += f"; as a match where only the absence of {last.name!r} is open"
    gap = None if pattern.gap is None else format_duration(pattern.gap)
    for limit, since in ((given_window(pattern), "the first event"), (gap, "the event taken last")):
        if limit is not None:
            yield StepInWords(None, f"{limit} since {since}", activating=False, action=action)
    for leaf in pattern.leaves:
        if leaf.window is not None:
            event = f"{format_duration(leaf.window)} since the event before {leaf.name!r}"
            yield StepInWords(leaf.name, event, activating=False, action=action)


def _text(conditions: Sequence[Condition | Subtype]) -> str:
    """The conditions of a stage as one text."""
    text = ""
    for condition in conditions:
        if not text:
            text = condition.text
        elif isinstance(condition, Condition) and condition.alternative:
            text = f"{text} OR {condition.text}"
        else:
            text = f"({text}) AND ({condition.text})"
    return text or "any"

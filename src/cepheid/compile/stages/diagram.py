"""The automaton as readable text and as a Mermaid state diagram."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from cepheid.compile.stages.automaton import Action, Automaton, Edge, build_automaton
from cepheid.lang.duration import format_duration
from cepheid.lang.stages.pattern import Pattern


def automaton_text(pattern: Pattern) -> str:
    """The states that a partial match can be in, each with the edges that events follow."""
    automaton = _with_own_names(build_automaton(pattern))
    lines = ["Automaton"]
    for number in _in_order(automaton):
        state = automaton.states[number]
        lines.append(f"  {_title(automaton, number)}")
        lines += [f"    {_edge_text(automaton, pattern, edge)}" for edge in state.edges]
    return "\n".join(lines)


def automaton_mermaid(pattern: Pattern) -> str:
    """The automaton as a Mermaid `stateDiagram-v2`."""
    automaton = _with_own_names(build_automaton(pattern))
    lines = ["stateDiagram-v2", "    direction LR"]
    for number in _in_order(automaton):
        lines.append(f"    s{number}: {_escaped(automaton.states[number].name)}")
        if automaton.states[number].complete:
            lines.append(f"    s{number} --> [*]: ends here: a match")
    lines.append(f"    [*] --> s{automaton.start}")
    for number in _in_order(automaton):
        for edge in automaton.states[number].edges:
            if edge.action is Action.STOP:
                continue
            target = "[*]" if edge.target == automaton.final else f"s{edge.target}"
            label = " ".join([edge.action.value, _guard_text(edge, pattern)]).strip()
            lines.append(f"    s{number} --> {target}: {_escaped(label)}")
    return "\n".join(lines)


def _with_own_names(automaton: Automaton) -> Automaton:
    """The automaton with names that tell its states apart: a stage that may be in several states has "pay", "pay (2)",
    … in the order of the text.
    """
    states, count = [*automaton.states], Counter[str]()
    for number in _in_order(automaton):
        name = states[number].name
        count[name] += 1
        if count[name] > 1:
            states[number] = replace(states[number], name=f"{name} ({count[name]})")
    return replace(automaton, states=tuple(states))


def _in_order(automaton: Automaton) -> list[int]:
    """The reachable states without the final one, in breadth-first order."""
    found = [automaton.start]
    for number in found:
        for edge in automaton.states[number].edges:
            if edge.target not in (*found, automaton.final):
                found.append(edge.target)
    return found


def _title(automaton: Automaton, number: int) -> str:
    state = automaton.states[number]
    notes = ["start"] if number == automaton.start else []
    notes += ["a partial match that ends here is a match"] if state.complete else []
    notes += ["a partial match whose time passes here is a match"] if state.pending else []
    return state.name + (f" ({'; '.join(notes)})" if notes else "")


def _edge_text(automaton: Automaton, pattern: Pattern, edge: Edge) -> str:
    words = [edge.action.value, _guard_text(edge, pattern)]
    if edge.action is not Action.STOP:
        words += ["→", "match" if edge.target == automaton.final else automaton.states[edge.target].name]
    return " ".join(word for word in words if word)


def _guard_text(edge: Edge, pattern: Pattern) -> str:
    """When the edge may be followed. A stage's name stands for its condition."""
    names = [leaf.name for leaf in pattern.leaves]
    names += [f"until of {loop.label}" for loop in pattern.loops_until]
    names += [] if pattern.without is None else [f"{pattern.without.name} before"]
    terms = [
        " and ".join(f"{'not ' if demand.negated else ''}{names[demand.condition]}" for demand in sorted(term))
        for term in edge.guard.terms
        if term
    ]
    if edge.window is not None:
        terms = [" or ".join(terms) + f" within {format_duration(timedelta(microseconds=edge.window))}"]
    return f"[{' or '.join(terms)}]" if terms else ""


def _escaped(text: str) -> str:
    """The text without the characters that end a label in Mermaid."""
    return text.replace("[…]", "*").replace(";", ",").replace(":", " ").replace("[", "(").replace("]", ")")

"""The automaton as readable text and as a Mermaid state diagram."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.compile.automaton import Automaton, Demand, Edge, build_automaton
from cepheid.lang.pattern import Pattern


def automaton_text(pattern: Pattern) -> str:
    """The states that a partial match can be in, each with where an event leads it."""
    automaton = build_automaton(pattern)
    lines = ["Automaton"]
    for number in _in_order(automaton):
        state = automaton.states[number]
        lines.append(f"  {_title(automaton, number)}")
        lines += [f"    {_edge_text(automaton, pattern, edge)}" for edge in state.edges]
    return "\n".join(lines)


def automaton_mermaid(pattern: Pattern) -> str:
    """The same as a Mermaid `stateDiagram-v2`."""
    automaton = build_automaton(pattern)
    lines = ["stateDiagram-v2", "    direction LR"]
    for number in _in_order(automaton):
        lines.append(f"    s{number}: {_escaped(automaton.states[number].name)}")
        if automaton.states[number].complete:
            lines.append(f"    s{number} --> [*]: ends here: a match")
    lines.append(f"    [*] --> s{automaton.start}")
    for number in _in_order(automaton):
        for edge in automaton.states[number].edges:
            target = "[*]" if edge.target == automaton.final else f"s{edge.target}"
            label = " ".join([edge.action.value, _guard_text(edge.guard, pattern)]).strip()
            lines.append(f"    s{number} --> {target}: {_escaped(label)}")
    return "\n".join(lines)


def _in_order(automaton: Automaton) -> list[int]:
    """The states that can be reached, each before those it leads to first; without the final one."""
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
    return state.name + (f" ({'; '.join(notes)})" if notes else "")


def _edge_text(automaton: Automaton, pattern: Pattern, edge: Edge) -> str:
    target = "match" if edge.target == automaton.final else automaton.states[edge.target].name
    words = [edge.action.value, _guard_text(edge.guard, pattern), "→", target]
    return " ".join(word for word in words if word)


def _guard_text(guard: Sequence[Demand], pattern: Pattern) -> str:
    demands = [f"{'not ' if demand.negated else ''}{pattern.stages[demand.stage].name}" for demand in guard]
    return f"[{' and '.join(demands)}]" if demands else ""


def _escaped(text: str) -> str:
    """Without the characters that end a label in Mermaid."""
    return text.replace("[…]", "*").replace(";", ",").replace(":", " ").replace("[", "(").replace("]", ")")

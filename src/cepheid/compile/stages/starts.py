"""The automaton that finds the events which start a partial match, those that `begin_without` forbids among them."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.compile.stages.automaton import Action, Automaton, Edge, State, Without
from cepheid.compile.stages.flatten import completing_guard, followed_edges
from cepheid.compile.stages.guard import ALWAYS, NEVER, Guard, any_of


def starts_of(automaton: Automaton) -> Automaton:
    """An automaton with a match for each event that starts a partial match in this one, or that would without
    `begin_without`. The match has this event only.
    """
    states = (State("final"), State("start", tuple(_starting(automaton))))
    return Automaton(states, start=1, final=0)


def _starting(automaton: Automaton) -> Iterator[Edge]:
    """Edges to the final state. An event follows at most one of them."""
    edges = [*followed_edges(automaton, automaton.start, ALWAYS)]
    stopped = any_of(_free(edge.guard, automaton.without) for edge in edges if edge.action is Action.STOP)
    seen = NEVER
    for edge in edges:
        if edge.action is Action.TAKE:
            # A forbidden event starts nothing, unless it completes a match at once.
            guard = _free(edge.guard, automaton.without) & (~stopped | completing_guard(automaton, edge.target))
            yield Edge(Action.TAKE, target=0, guard=guard & ~seen, stage=edge.stage)
            seen |= guard


def _free(guard: Guard, without: Without | None) -> Guard:
    """The guard without the demand of `begin_without`."""
    if without is None:
        return guard
    return Guard(tuple(frozenset(one for one in term if one.condition != without.condition) for term in guard.terms))

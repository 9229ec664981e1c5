"""Which events start a partial match."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cepheid.compile.stages.automaton import Action, Automaton


def starting_stage(automaton: Automaton, holds: Callable[[int], bool]) -> int | None:
    """The first stage that would take an event as the first one of a partial match; None if none would. `holds` says
    which conditions, by number, the event meets.
    """
    return next(_taking(automaton, automaton.start, holds), None)


def _taking(automaton: Automaton, state: int, holds: Callable[[int], bool]) -> Iterator[int]:
    for edge in automaton.states[state].edges:
        if not any(all(holds(one.condition) != one.negated for one in term) for term in edge.guard.terms):
            continue
        if edge.action is Action.PROCEED:
            yield from _taking(automaton, edge.target, holds)
        elif edge.action is Action.TAKE and edge.stage is not None:
            yield edge.stage

"""How an event finds the partial matches that it can change: by their ties, or by visiting all of a state.

A state is looked up by ties if an event that meets none of its conditions changes nothing in it (relaxed contiguity),
and if one of its conditions has ties. An event that may meet another of its conditions visits all: an `until`, a
negation or a greedy exit without the tie. Where the conditions have different ties, those that most conditions have are
used. Equalities come before order comparisons, as they leave fewer candidates.

A tie only selects candidates; the condition decides, as without it. So a tie is used only if not visiting a partial
match hides no failure: no part of the condition that is evaluated before the tie may fail. If a later part may fail,
candidates include those for which the tie is NULL, because SQL goes on after NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cepheid.compile.stages.flatten import FlatAutomaton, TruthBits, reachable, union
from cepheid.compile.stages.tables import Lookup
from cepheid.plan.conditions.script import Operator, can_fail, conjuncts
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.ties import Tie, ties_of

MOST_STATES = 64
"""An event looks into each state, so an automaton with more states than this has no lookups."""


@dataclass(frozen=True)
class StateLookup:
    """How an event finds the partial matches in a state."""

    kind: Lookup
    ties: tuple[Tie, ...] = ()
    """Several equalities, or one order comparison."""
    nulls: bool = False
    """Whether a tie that is NULL counts as if it held."""
    visits_all: int = 0
    """The truth bits of events that visit all."""
    why: str = ""
    """Why all are visited, in words; for `visits_all`, by which events."""


def choose_lookups(plan: Plan, flat: FlatAutomaton, bits: TruthBits) -> tuple[StateLookup, ...]:
    """One for each state."""
    known: dict[int, list[Tie]] = {}
    for tie in ties_of(plan):
        known.setdefault(tie.condition, []).append(tie)
    why = "a condition is computed in Python" if plan.runs_in_python else ""
    if len(flat.edges) > MOST_STATES:
        why = f"the pattern has more than {MOST_STATES} states"
    waiting = reachable(flat) - {flat.automaton.start}
    return tuple(
        _choose(plan, demands, known, bits) if state in waiting and not why else StateLookup(Lookup.ALL, why=why)
        for state, demands in enumerate(flat.demands)
    )


def _choose(plan: Plan, demands: frozenset[int] | None, known: dict[int, list[Tie]], bits: TruthBits) -> StateLookup:
    if demands is None:
        return StateLookup(Lookup.ALL, why="any event can end or change them")
    ties = {condition: known.get(condition, []) for condition in sorted(demands)}
    if not any(ties.values()):
        return StateLookup(Lookup.ALL, why="no condition compares the event with an earlier one by =, < or >")
    certain = {condition: [tie for tie in each if tie.certain] for condition, each in ties.items()}
    if not any(certain.values()):
        return StateLookup(
            Lookup.ALL, why="a part of the condition before the comparison may fail: write the comparison first"
        )
    choices = [*_choices(certain)]
    covered, chosen = max(choices, key=lambda choice: (len(choice[0]), len(choice[1])))
    visits_all = union(bits.waking(condition) for condition in demands - covered)
    if all(bits.waking(condition) & visits_all for condition in covered):
        return StateLookup(Lookup.ALL, why="an event may also meet a condition without the comparison")
    parts = (part for condition in covered for part in conjuncts(plan.conditions[condition].script))
    return StateLookup(
        Lookup.EQUAL if chosen[0].comparison is Operator.EQUAL else Lookup.ORDERED,
        chosen,
        nulls=any(map(can_fail, parts)),
        visits_all=visits_all,
        why="" if covered == demands else "other events visit all, as they may meet a condition without the comparison",
    )


def _choices(ties: dict[int, list[Tie]]) -> Iterator[tuple[frozenset[int], tuple[Tie, ...]]]:
    """Ties to look up, and the conditions that have all of them; equalities only, if there are any."""
    equalities = {c: [t for t in each if t.comparison is Operator.EQUAL] for c, each in ties.items()}
    if any(equalities.values()):
        keys = [tuple(each) for each in equalities.values() if each]
        keys.append(_common(equalities.values()))
    else:
        keys = [(tie,) for each in ties.values() for tie in each]
    sides = {c: frozenset(map(_sides, each)) for c, each in ties.items()}
    different: dict[frozenset[object], tuple[Tie, ...]] = {}
    for key in filter(None, keys):
        different.setdefault(frozenset(map(_sides, key)), key)
    for asked, key in different.items():
        yield frozenset(c for c, has in sides.items() if asked <= has), key


def _common(ties: Iterable[list[Tie]]) -> tuple[Tie, ...]:
    """The ties that all conditions have which have any."""
    first, *others = (each for each in ties if each)
    return tuple(tie for tie in first if all(_sides(tie) in map(_sides, other) for other in others))


def _sides(tie: Tie) -> tuple[object, ...]:
    """Equal for ties that hold for the same events."""
    swapped = tie.comparison is not Operator.EQUAL and tie.value_first
    return tie.comparison, tie.value, tie.earlier, swapped

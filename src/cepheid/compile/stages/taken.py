"""What is known of a partial match by its state: which stages have taken events, and which cannot have.

Scripts are simplified by it. In a state in which no event was taken, `count(a) = 0` is true and `a.price` is NULL.
Loops whose first event meets no condition across events are written so: `count(a) = 0 OR price > last(a.price)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cepheid.compile.stages.flatten import FlatAutomaton
from cepheid.compile.stages.tables import IGNORED
from cepheid.plan.conditions.script import (
    Aggregate,
    ConstantValue,
    Fold,
    Operation,
    Operator,
    Script,
    StageValue,
)


@dataclass(frozen=True)
class Taken:
    """The stages that have taken events."""

    surely: frozenset[int] = frozenset()
    maybe: frozenset[int] = frozenset()
    """These and all others that may have."""

    def and_by(self, stage: int) -> Taken:
        """The same after the stage has taken an event, or after the event was IGNORED."""
        also = frozenset[int]() if stage == IGNORED else frozenset([stage])
        return Taken(self.surely | also, self.maybe | also)

    def or_(self, other: Taken | None) -> Taken:
        """What holds in both cases."""
        return self if other is None else Taken(self.surely & other.surely, self.maybe | other.maybe)


def taken_in(flat: FlatAutomaton) -> Mapping[int, Taken]:
    """By the number of the state, for all that are reachable."""
    start = flat.automaton.start
    known, open_ = {start: Taken()}, [start]
    while open_:
        number = open_.pop()
        for edge in flat.edges[number]:
            if edge.target >= 0:
                found = known[number].and_by(edge.stage).or_(known.get(edge.target))
                if found != known.get(edge.target):
                    known[edge.target] = found
                    open_.append(edge.target)
    return known


def simplified(script: Script, taken: Taken) -> Script:
    """The script without what is known. It must not be able to fail."""
    match script:
        case StageValue(stage=stage, type=type_) if stage not in taken.maybe:
            return ConstantValue(None, type_)
        case Aggregate(stage=stage, fold=fold, type=type_) if stage not in taken.maybe:
            return ConstantValue(0 if fold.counts else None, type_)
        case Operation():
            operands = tuple(simplified(operand, taken) for operand in script.operands)
            return _folded(replace(script, operands=operands), taken)
        case _:
            return script


def _folded(operation: Operation, taken: Taken) -> Script:
    operator, (first, *others) = operation.operator, operation.operands
    known: bool | None
    if operator in (Operator.AND, Operator.OR):
        return _connected(operation)
    if operator in (Operator.EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL):
        if any(isinstance(each, ConstantValue) and each.value is None for each in operation.operands):
            return _constant(operation, value=None)
        compared = _compared(operator, _bounds(first, taken), _bounds(others[0], taken))
        return operation if compared is None else _constant(operation, value=compared)
    if isinstance(first, ConstantValue) and operator in (Operator.NOT, Operator.IS_NULL):
        known = first.value is None
        if operator is Operator.NOT:
            known = None if known else not first.value
        return _constant(operation, value=known)
    return operation


def _connected(operation: Operation) -> Script:
    """AND and OR: an operand that decides, and operands that do not matter."""
    decisive = operation.operator is Operator.OR
    known = [each.value for each in operation.operands if isinstance(each, ConstantValue)]
    if decisive in known:
        return _constant(operation, value=decisive)
    operands = tuple(
        each for each in operation.operands if not (isinstance(each, ConstantValue) and each.value is (not decisive))
    )
    if not operands:
        return _constant(operation, value=not decisive)
    return replace(operation, operands=operands) if len(operands) > 1 else operands[0]


def _bounds(script: Script, taken: Taken) -> tuple[float, float] | None:
    """The least and the greatest number that a constant or a count may be."""
    match script:
        case ConstantValue(value=int(value)):
            return value, value
        case Aggregate(fold=Fold.COUNT, column=None, stage=stage):
            return int(stage in taken.surely), math.inf
        case _:
            return None


def _compared(operator: Operator, left: tuple[float, float] | None, right: tuple[float, float] | None) -> bool | None:
    """Whether the comparison holds for all numbers within the bounds (true), for none (false), or for some."""
    if left is None or right is None:
        return None
    if operator is Operator.EQUAL:
        if left[1] < right[0] or right[1] < left[0]:
            return False
        return True if left[0] == left[1] == right[0] == right[1] else None
    if operator is Operator.LESS:
        return True if left[1] < right[0] else False if left[0] >= right[1] else None
    return True if left[1] <= right[0] else False if left[0] > right[1] else None


def _constant(operation: Operation, *, value: bool | None) -> ConstantValue:
    return ConstantValue(value, operation.type)

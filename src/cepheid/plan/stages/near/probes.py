"""Probes: the conjuncts of a plan's conditions as scripts, each with the values that it compares.

A plan has one bit and one script for a whole condition, which say only whether it is true. Where people look at single
events, each conjunct is evaluated on its own, with SQL's three values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cached_property
from itertools import groupby

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.events.batch import Schema
from cepheid.events.time import arrow_zone, has_one_offset, python_zone
from cepheid.knowledge.question import Question, with_answers
from cepheid.lang.expression import Literal
from cepheid.lang.function import Function
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.asked_types import ask_types
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import Apply, Column, Constant, Folded, Node, Pick
from cepheid.plan.conditions.result_types import COMPARISONS
from cepheid.plan.conditions.script import Aggregate, ConstantValue, CurrentValue, Operation, Script, StageValue
from cepheid.plan.engine import SqlEngine
from cepheid.plan.lifted import Lifted
from cepheid.plan.stages.build import ConditionPart, combined, resolved_texts
from cepheid.plan.stages.names import names_of
from cepheid.plan.stages.near.conjuncts import Conjunct, conjuncts_of
from cepheid.plan.stages.parameters import with_values
from cepheid.plan.stages.plan import Plan


@dataclass(frozen=True)
class Side:
    """A value that a conjunct looks at."""

    text: str
    """As the user wrote it."""
    script: Script
    is_constant: bool
    """Whether its text is its value."""


@dataclass(frozen=True)
class Probe:
    """A conjunct as a script."""

    text: str
    script: Script | None
    """None: it cannot be evaluated on its own."""
    sides: tuple[Side, ...] = ()
    """Of a comparison the left and the right side; otherwise the values of events that are in it."""
    operator: str | None = None
    """The comparison, or "between", if the conjunct is one: its sides are then the operands, in their order."""
    zone: tzinfo = UTC
    """That of local times."""

    @cached_property
    def is_of_one_event(self) -> bool:
        """Whether it reads nothing but values of the current event."""
        return all(_is_of_one_event(one) for one in self._scripts)

    @property
    def _scripts(self) -> Iterator[Script]:
        yield from (one for one in (self.script, *(side.script for side in self.sides)) if one is not None)

    def reads(self, columns: Collection[int]) -> bool:
        """Whether it reads one of these lifted columns."""
        return any(_reads(one, columns) for one in self._scripts)


@dataclass(frozen=True)
class Probes:
    """The probes of all of a plan's conditions, and the columns that are lifted for them."""

    schema: Schema
    each: tuple[tuple[Probe, ...], ...]
    """For each condition of the plan its conjuncts, in order; none for a condition that any event meets."""
    values: tuple[Lifted, ...]
    questions: tuple[Question, ...]
    functions: tuple[Function, ...]
    columns: tuple[str, ...] = ()
    """The event columns that come along as they are."""
    bits: tuple[Lifted, ...] = field(default=())

    def without(self, columns: Collection[int]) -> Probes:
        """The probes without these of the lifted columns: what reads them cannot be evaluated."""
        nothing = [
            replace(one, sql="NULL", expression=Literal(None, pa.null(), (0, 0))) if number in columns else one
            for number, one in enumerate(self.values)
        ]
        each = tuple(tuple(_without(probe, columns) for probe in probes) for probes in self.each)
        return replace(self, each=each, values=tuple(nothing))


def _without(probe: Probe, columns: Collection[int]) -> Probe:
    return Probe(probe.text, None) if probe.reads(columns) else probe


def _is_of_one_event(script: Script) -> bool:
    if isinstance(script, Operation):
        return all(map(_is_of_one_event, script.operands))
    return isinstance(script, ConstantValue | CurrentValue)


def _reads(script: Script, columns: Collection[int]) -> bool:
    match script:
        case Operation(operands=operands):
            return any(_reads(operand, columns) for operand in operands)
        case CurrentValue(column=column) | StageValue(column=column) | Aggregate(column=column):
            return column in columns
        case _:
            return False


def probes_of(plan: Plan, engine: SqlEngine) -> Probes:
    """The probes of the plan's conditions."""
    problems: list[Problem] = []
    parameters = Parameters(plan.pattern.parameters)
    pattern = with_values(plan.pattern, parameters, problems)
    found = resolved_texts(pattern, {}, {}, plan.schema.columns, problems, parameters=parameters)
    nodes = [part.node for parts in found.conditions for part in parts]
    types = ask_types(engine, nodes, with_answers(plan.schema.columns, found.questions), problems)
    assert not problems, "the plan has been built"
    lifting = Lifting(types, has_one_offset(engine.time_zone), names_of(pattern), knows_texts=True)
    zone = python_zone(arrow_zone(engine.time_zone))
    each = []
    for number, parts in enumerate(found.conditions):
        lifting.stage = number
        conditions = pattern.leaves[number].conditions if number < len(pattern.leaves) else ()
        written = [*conjuncts_of(conditions)]
        each.append(tuple(replace(_probe(lifting, *one), zone=zone) for one in _conjuncts(lifting, parts, written)))
    values = tuple(lifted for _, lifted in lifting.values.values())
    return Probes(plan.schema, tuple(each), values, tuple(found.questions), plan.functions)


def _conjuncts(
    lifting: Lifting, parts: Sequence[ConditionPart], written: Sequence[Conjunct]
) -> Iterator[tuple[str, Node]]:
    """The text and the node of each conjunct; `written` are those of a stage, none for other conditions."""
    if not written:
        yield from ((resolve.text_of(part.node), part.node) for part in parts)
    for (first, last), same in groupby(written, key=lambda one: (one.first, one.last)):
        conjuncts_there = [*same]
        node = combined(parts[first : last + 1])
        assert node is not None
        nodes = [node] if conjuncts_there[0].part is None else lifting.conjuncts(node)
        yield from zip((one.text for one in conjuncts_there), nodes, strict=True)


def _probe(lifting: Lifting, text: str, node: Node) -> Probe:
    text, script = " ".join(text.split()), _lowered(lifting, node)
    if script is None:
        return Probe(text, None)
    if isinstance(node, Apply) and node.call.function in (*COMPARISONS, "between"):
        compared = zip(lifting.with_casts(node).args, node.args, strict=True)
        operands = [_side(lifting, arg, is_constant=_is_written(written)) for arg, written in compared]
        sides = tuple(one for one in operands if one is not None)
        return Probe(text, script, sides, node.call.function if len(sides) == len(operands) else None)
    read = {_text(one): _side(lifting, one, is_constant=False) for one in _read(node)}
    return Probe(text, script, tuple(one for one in read.values() if one is not None))


def _side(lifting: Lifting, node: Node, *, is_constant: bool) -> Side | None:
    script = _lowered(lifting, node)
    return None if script is None else Side(_text(node), script, is_constant)


def _read(node: Node) -> Iterator[Node]:
    """The values of events in the node."""
    if isinstance(node, Column | Pick | Folded):
        if not (isinstance(node, Column) and node.event is None):
            yield node
    else:
        for sub in resolve.subnodes(node):
            yield from _read(sub)


def _lowered(lifting: Lifting, node: Node) -> Script | None:
    """The node as a script; None if its type is none that scripts have. What may fail is computed by the script."""
    try:
        if not isinstance(node, Constant):
            lifting.type_of(node)
        return lifting.lower(node, guarded=True)
    except PatternError:
        return None


def _text(node: Node) -> str:
    return " ".join(resolve.text_of(node).split())


def _is_written(node: Node) -> bool:
    """Whether the text of the node is its value."""
    return isinstance(node, Constant) and not resolve.text_of(node).startswith("$")

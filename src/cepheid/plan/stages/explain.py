"""Plans and patterns as readable text: what is looked for, and which engine computes what.

A plan's text has three parts. First come the stages, each with its contiguity, quantifier and condition; those of a
group are indented below it and numbered as in the messages of pattern files (2.1). Then come the lifted columns, which
the host's SQL engine computes for every event, and what applies to the whole pattern. Scripts are printed as SQL-like
text, in which `late.origin` belongs to the last event that the stage has so far, as in the conditions that users write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from cepheid.lang.stages.parametric import given_length, given_window
from cepheid.lang.stages.pattern import Contiguity, Pattern, Stage
from cepheid.lang.stages.words import asked_text, quantifier_parts, skip_text, without_parts, written_conditions
from cepheid.lang.taxonomy import Taxonomy
from cepheid.plan.conditions.parameters import described
from cepheid.plan.conditions.script import (
    Aggregate,
    ConstantValue,
    CurrentValue,
    Fold,
    FunctionValue,
    Operation,
    Operator,
    Script,
    StageValue,
)
from cepheid.plan.lifted import Lifted, Measure, PlannedCondition, Slot
from cepheid.plan.semantics.explain import lifted_text, shortened
from cepheid.plan.stages.build import odd_in
from cepheid.plan.stages.cautions import cautions
from cepheid.plan.stages.growth import growth_warnings
from cepheid.plan.stages.names import asked_types
from cepheid.plan.stages.plan import Plan
from cepheid.plan.taxonomy import taxonomy_warnings

_CONTIGUITY = {
    Contiguity.STRICT: "directly next",
    Contiguity.RELAXED: "followed by the next that matches",
    Contiguity.RELAXED_ANY: "followed by any that matches",
    Contiguity.NOT_NEXT: "NOT directly next",
    Contiguity.NOT_FOLLOWED_BY: "NOT followed by any that matches",
}
_INFIX = {
    Operator.ADD,
    Operator.SUBTRACT,
    Operator.MULTIPLY,
    Operator.DIVIDE,
    Operator.INTEGER_DIVIDE,
    Operator.REMAINDER,
    Operator.EQUAL,
    Operator.LESS,
    Operator.LESS_OR_EQUAL,
    Operator.NULL_SAFE_EQUAL,
    Operator.AND,
    Operator.OR,
}
_AFFIX = {Operator.NEGATE: "(-{})", Operator.NOT: "(NOT {})", Operator.IS_NULL: "({} IS NULL)"}


_SPEED = "at tens of thousands of events a second"
"""Measured by `benchmarks/functions.py`."""


def explain_pattern(pattern: Pattern) -> str:
    """A pattern as text with conditions as written, as far as the text needs no schema; and warnings."""
    return describe_pattern(pattern) + "".join(f"{warning}\n" for warning in _warnings(pattern))


def describe_pattern(pattern: Pattern) -> str:
    """As `explain_pattern`, but without warnings."""
    return _text([_title(pattern), "", *_stage_lines(pattern.stages, written_conditions), "", *_whole_pattern(pattern)])


def explain_plan(plan: Plan) -> str:
    """A plan as text: stages with lifted and script conditions, the lifted columns, the window, the skip strategy."""
    leaves = len(plan.pattern.leaves)
    conditions, untils = iter(plan.conditions[:leaves]), iter(plan.conditions[leaves:])

    def planned(stage: Stage) -> Iterator[str]:
        """The conditions of a stage. It must be called in the order of the plan's conditions: a group comes before its
        stages.
        """
        if not stage.group:
            yield from _planned_condition(next(conditions), plan)
        if stage.until is not None:
            yield from (f"until, {text}" for text in _planned_condition(next(untils), plan))

    lines = [_title(plan.pattern), "", *_stage_lines(plan.pattern.stages, planned)]
    lines += [
        "",
        *_lifted(plan),
        *_measures(plan),
        *_whole_pattern(plan.pattern),
        *lifted_text(plan.pattern.knowledge, plan.answers),
        *_input(plan),
        *_warnings(plan.pattern, plan),
    ]
    return _text(lines)


def script_text(script: Script, plan: Plan) -> str:
    """A script as SQL-like text, in which lifted columns are written out."""
    text = _script(script, plan)
    return text[1:-1] if isinstance(script, Operation) and script.operator in _INFIX | _AFFIX.keys() else text


def _text(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _title(pattern: Pattern) -> str:
    return f"Pattern {pattern.name}" + (f", version {pattern.version}" if pattern.version is not None else "")


def _stage_lines(
    stages: Sequence[Stage], conditions: Callable[[Stage], Iterable[str]], indent: str = "  ", group: str = ""
) -> Iterator[str]:
    """The stages, each with its conditions below it; `group` is the number of the enclosing group."""
    for index, stage in enumerate(stages):
        number = f"{group}{index + 1}."
        how = "begins with" if index == 0 else _CONTIGUITY[stage.contiguity]
        yield f"{indent}{number} {stage.name or 'group'}: {', '.join([how, *quantifier_parts(stage)])}"
        below = indent + " " * (len(number) + 1)
        yield from (below + text for text in conditions(stage))
        yield from _stage_lines(stage.group, conditions, below, number)


def _planned_condition(condition: PlannedCondition, plan: Plan) -> Iterator[str]:
    if condition.bit is not None:
        yield f"lifted: bit {condition.bit}, {shortened(plan.bits[condition.bit].sql)}"
    if condition.script is not None:
        yield f"script: {script_text(condition.script, plan)}"
    if condition.bit is None and condition.script is None:
        yield "any event"


def _lifted(plan: Plan) -> Iterator[str]:
    """The columns that the host's SQL engine computes, numbered as in masks and scripts."""
    if not (plan.bits or plan.values):
        return
    yield "Lifted columns (computed for every event by the SQL engine of the host)"
    names = [f"bit {number}" for number in range(len(plan.bits))]
    names += [f"value {number}" for number in range(len(plan.values))]
    rows = [(shortened(lifted.sql), str(lifted.type)) for lifted in (*plan.bits, *plan.values)]
    widest = max(map(len, names))
    for name, (sql, kind) in zip(names, rows, strict=True):
        yield f"  {name:<{widest}}  {sql}  ({kind})"
    yield ""


def _measures(plan: Plan) -> Iterator[str]:
    if not plan.measures:
        return
    yield "Measures (computed once a match)"
    for measure in plan.measures:
        sql = _with_slots(measure, plan)
        yield f"  {measure.name} = {sql}  ({measure.type})"
    yield ""


def _with_slots(measure: Measure, plan: Plan) -> str:
    slots = {name: _slot(slot, plan) for name, slot in measure.slots.items()}
    if not slots:
        return measure.sql
    # One pass, so that a slot's text is not mistaken for another slot's name.
    names = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in slots))
    return names.sub(lambda found: slots[found.group()], measure.sql)


def _whole_pattern(pattern: Pattern) -> Iterator[str]:
    window = given_window(pattern)
    yield f"Within: {'no limit' if window is None else f'{window}, from the first event to the last'}"
    if pattern.gap is not None:
        yield f"Gap: each event less than {given_length(pattern, 'gap', pattern.gap)} after the one before it"
    if pattern.without is not None:
        yield f"Before: {', '.join([f'no {pattern.without.name}', *without_parts(pattern.without)])}"
    yield f"Skip strategy: {skip_text(pattern.skip_strategy)}"
    if pattern.types is not None:
        yield f"Types: column {pattern.types.column}{''.join(_kinds(pattern.types))}"
    yield from described(pattern.parameters)
    if names := dict.fromkeys(function.name for _, function in pattern.functions):
        yield f"Runs in Python, {_SPEED}, as these cannot be compiled: {', '.join(names)}"


def _kinds(types: Taxonomy) -> Iterator[str]:
    for kind, above in types.kinds:
        if above:
            yield f"; {kind} is a {' and a '.join(above)}"


def pattern_warnings(pattern: Pattern, plan: Plan | None) -> tuple[str, ...]:
    """Notes on what works, but perhaps not as intended; the pattern has no problems."""
    odd = odd_in(pattern) if plan is None else plan.odd
    return (
        *(f"{warning}." for warning in odd),
        *growth_warnings(pattern),
        *cautions(pattern),
        *(f"{warning}." for warning in taxonomy_warnings(pattern.types, asked_types(pattern))),
    )


def _warnings(pattern: Pattern, plan: Plan | None = None) -> Iterator[str]:
    yield from (f"Warning: {warning}" for warning in pattern_warnings(pattern, plan))


def _input(plan: Plan) -> Iterator[str]:
    yield f"Key: {', '.join(plan.schema.key) or 'none, all events are one sequence'}"
    order = [*([plan.schema.time] if plan.schema.time else []), *plan.schema.order_by]
    yield f"Order: {', '.join(order)}"
    if plan.measures is None:
        yield f"Event columns in the matches: {', '.join(plan.columns)}"


def _script(script: Script, plan: Plan) -> str:
    match script:
        case ConstantValue(value):
            return _constant(value)
        case CurrentValue(column):
            return _operand(plan.values[column])
        case StageValue() | Aggregate():
            return _slot(script, plan)
        case Operation():
            return _operation(script, plan)
        case FunctionValue(function):
            return asked_text(function)


def _constant(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
    return str(value)


def _slot(slot: Slot, plan: Plan) -> str:
    stage = _quoted(plan.pattern.leaves[slot.stage].name)
    if isinstance(slot, Aggregate):
        column = "" if slot.column is None else "." + _operand(plan.values[slot.column])
        if slot.fold is Fold.DISTINCT:
            return f"count(DISTINCT {stage}{column})"
        key = "" if slot.key is None else f", {stage}.{_operand(plan.values[slot.key])}"
        return f"{slot.fold.value}({stage}{column}{key})"
    place = f"{stage}.{_operand(plan.values[slot.column])}"
    if slot.from_first:
        return f"first({place}{f', {slot.back}' if slot.back else ''})"
    return f"last({place}, {slot.back})" if slot.back else place


def _operand(lifted: Lifted) -> str:
    simple = re.fullmatch(r"[\w.]+|`[^`]*`", lifted.sql)
    return lifted.sql if simple else f"({lifted.sql})"


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name.replace('`', '``')}`"


def _operation(operation: Operation, plan: Plan) -> str:
    """The operation as text. Infix and affix operators are in parentheses, so that readers need not know their
    precedence.
    """
    operator = operation.operator
    if operator in _INFIX:
        word = f" {operator.value.upper()} "
        return "(" + word.join(_script(operand, plan) for operand in operation.operands) + ")"
    if operator in _AFFIX:
        return _AFFIX[operator].format(_script(operation.operands[0], plan))
    operands = [script_text(operand, plan) for operand in operation.operands]
    if operator is Operator.CASE:
        branches = zip(operands[0:-1:2], operands[1:-1:2], strict=True)
        whens = " ".join(f"WHEN {when} THEN {then}" for when, then in branches)
        return f"CASE {whens} ELSE {operands[-1]} END"
    if operator is Operator.CAST:
        return f"cast({operands[0]} AS {operation.type})"
    return f"{operator.value.replace(' ', '_')}({', '.join(operands)})"

"""A pattern of occurrences, or its plan, as readable text and as a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from cepheid.lang.duration import format_duration
from cepheid.lang.occurrences import expression as algebra
from cepheid.lang.occurrences.expression import Occurrence, operands
from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
from cepheid.lang.occurrences.printer import condition_text, pattern_text
from cepheid.lang.pictures.mermaid import label
from cepheid.lang.taxonomy import Taxonomy
from cepheid.plan.conditions.parameters import described
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.plan import OccurrencePlan, Operator
from cepheid.plan.occurrences.types import misread_types
from cepheid.plan.semantics.explain import lifted_text, shortened

_NAMES = {
    Kind.LEAF: "event",
    Kind.BOTH: "and",
    Kind.EITHER: "or",
    Kind.THEN: "then",
    Kind.WITHOUT: "minus",
    Kind.WITHIN: "within",
    Kind.DELAYED: "plus",
    Kind.BOUND: "as",
    Kind.FILTERED: "where",
}
_KINDS: dict[type[Occurrence], Kind] = {
    algebra.Leaf: Kind.LEAF,
    algebra.Both: Kind.BOTH,
    algebra.Either: Kind.EITHER,
    algebra.Then: Kind.THEN,
    algebra.Without: Kind.WITHOUT,
    algebra.Within: Kind.WITHIN,
    algebra.Delayed: Kind.DELAYED,
    algebra.Bound: Kind.BOUND,
    algebra.Filtered: Kind.FILTERED,
}
_POLICIES = {
    Policy.UNRESTRICTED: "all occurrences",
    Policy.RECENT: "of the occurrences with one end, one with the latest start",
    Policy.SNOOP_RECENT: "Snoop's recent context",
    Policy.CHRONICLE: "Snoop's chronicle context",
    Policy.CONTINUOUS: "Snoop's continuous context",
    Policy.CUMULATIVE: "Snoop's cumulative context",
}


def explain_occurrences(pattern: OccurrencePattern) -> str:
    """What the pattern looks for."""
    return _described(pattern) + "".join(f"Note: {warning}\n" for warning in misread_types(pattern))


def _described(pattern: OccurrencePattern) -> str:
    lines = [f"Pattern {pattern.name!r}: occurrences of"]
    lines += [f"  {line}" for line in pattern_text(pattern).split("\n")]
    lines.append(f"Policy: {_POLICIES[pattern.chosen or Policy.UNRESTRICTED]}")
    return "\n".join([*lines, *_types(pattern.types), *described(pattern.parameters)]) + "\n"


def explain_occurrence_plan(plan: OccurrencePlan) -> str:
    """What the plan looks for, and how it will run."""
    lines = [_described(plan.pattern)]
    if plan.by_operator:
        lines.append("Each operator emits the most recent occurrence alone, and stores no more than it needs.")
    lines += _meanings(plan)
    lines += [f"Note: {warning}" for warning in plan.warnings]
    lines += ["Operators, equal ones once:", *(f"  {row:>2}  {text}" for row, text in enumerate(_rows(plan)))]
    if plan.values:
        lines += ["Columns for conditions and measures:"]
        lines += [f"  {shortened(value.sql)}: {sql_name(value.type)}" for value in plan.values]
    return "\n".join(lines) + "\n"


def _meanings(plan: OccurrencePlan) -> Iterator[str]:
    """How it is found out what events mean."""
    if plan.pattern.knowledge is None:
        return
    if plan.semantics is None:
        yield from lifted_text(plan.pattern.knowledge, plan.answers)
    else:
        yield f"Knowledge: {plan.pattern.knowledge}"
        yield f"What events mean: growing, asked of what each key's events say by then, because {plan.semantics.why}."


def occurrence_mermaid(plan: OccurrencePlan) -> str:
    """The operators as a Mermaid diagram, events below."""
    lines = ["flowchart BT"]
    for row, operator in enumerate(plan.operators):
        lines.append(f'    n{row}["{label(_named(plan, operator))}"]')
        lines += [f"    n{operand} --> n{row}" for operand in operator.operands]
    return "\n".join(lines)


def occurrence_drawing(pattern: OccurrencePattern) -> str:
    """As `occurrence_mermaid`, for a pattern without a schema. Expressions appear as written, and equal ones once."""
    lines, numbers = ["flowchart BT"], dict[Occurrence, int]()

    def number(expression: Occurrence) -> int:
        if expression not in numbers:
            below = [number(operand) for operand in operands(expression)]
            numbers[expression] = len(numbers)
            lines.append(f'    n{numbers[expression]}["{label(_written(expression))}"]')
            lines.extend(f"    n{operand} --> n{numbers[expression]}" for operand in below)
        return numbers[expression]

    number(pattern.expression)
    return "\n".join(lines)


def _written(expression: Occurrence) -> str:
    name = _NAMES[_KINDS[type(expression)]]
    match expression:
        case algebra.Leaf(of) | algebra.Bound(variable=of):
            return f"{name} {of}"
        case algebra.Filtered(condition=condition):
            return f"{name} {condition_text(condition)}"
        case algebra.Timed(length=length):
            return f"{name} {format_duration(length) or '0 seconds'}"
        case algebra.Without(condition=condition) if condition is not None:
            return f"{name} if {condition_text(condition)}"
    return name


def _rows(plan: OccurrencePlan) -> Iterator[str]:
    for operator in plan.operators:
        of = " and ".join(map(str, operator.operands))
        yield f"{_named(plan, operator)}{f' of {of}' if of else ''}"


def _named(plan: OccurrencePlan, operator: Operator) -> str:
    name = _NAMES[operator.kind]
    match operator.kind:
        case Kind.LEAF:
            sql = shortened(plan.bits[operator.number].sql) if operator.number >= 0 else ""
            means = "" if operator.type is None else f"of {operator.type}"
            return " ".join(filter(None, [name, means, sql]))
        case Kind.WITHIN | Kind.DELAYED:
            return f"{name} {format_duration(timedelta(microseconds=operator.number)) or '0 seconds'}"
        case Kind.BOUND:
            return f"{name} {plan.variables[operator.number].name}"
        case Kind.WITHOUT if operator.is_conditional:
            return "minus if"
    return name


def _types(types: Taxonomy | None) -> Iterator[str]:
    if types is None:
        return
    yield f"Types: column {types.column!r}"
    for kind, above in types.kinds:
        if above:
            yield f"  {kind} is a kind of {', '.join(above)}"

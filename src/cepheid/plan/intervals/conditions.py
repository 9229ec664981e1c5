"""Conditions of interval patterns: SQL in which `a.column` is a column of variable a, and `start(a)` and `end(a)` are
its times.

Variables take the role of stages, so the same code resolves and lifts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.errors import Problem, did_you_mean
from cepheid.knowledge.question import with_answers
from cepheid.lang.consistency import End
from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.lang.semantic import FILTER
from cepheid.plan.conditions.choices import with_functions_inside
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import CURRENT, Column, Node, Resolver, Source, elsewhere, events_of, walk
from cepheid.plan.intervals.semantic import SemanticConditions, given_filter

_ENDS = {end.value: end for end in End}


@dataclass(frozen=True)
class Variables:
    """The names that a condition may use."""

    names: tuple[str, ...]
    """All variables, by number: first those of the match, then the negated ones."""
    allowed: frozenset[int]
    columns: Mapping[End, str]
    """The events' columns for start and end."""
    parameters: Parameters
    semantics: SemanticConditions


def resolved(
    text: str, where: str, variables: Variables, columns: pa.Schema | None, problems: list[Problem]
) -> list[Node]:
    """The AND-ed parts of the condition with their names resolved. Parts with problems are left out, and their problems
    are appended to `problems`. `columns` None: any name may be a column.
    """
    source = Source(text, where)
    expression = variables.parameters.parse(source, problems)
    if expression is None:
        return []
    nodes: list[Node] = []
    for part in _conjuncts(expression):
        if (filter_ := given_filter(part)) is not None:
            sql = variables.semantics.filter(filter_, where, variables.allowed)
            known = None if columns is None else with_answers(columns, variables.semantics.lifted.questions)
            nodes += [] if sql is None else resolved(sql, where, variables, known, problems)
            continue
        node = _resolved_part(_with_times(part, source, variables), source, variables, columns, problems)
        nodes += [] if node is None else [node]
    return nodes


@dataclass(frozen=True)
class MeasureTexts:
    """Reads measures, whose names are variables of the match."""

    variables: Variables
    columns: pa.Schema | None

    def parse(self, source: Source, problems: list[Problem]) -> Expression | None:
        """The expression of the source's text, None if it has problems."""
        expression = self.variables.parameters.parse(source, problems)
        if expression is None:
            return None
        expression = _with_times(expression, source, self.variables)
        found = [*_name_problems(expression, source, self.variables, self.columns)]
        problems += found
        return None if found else expression


def _resolved_part(
    part: Expression, source: Source, variables: Variables, columns: pa.Schema | None, problems: list[Problem]
) -> Node | None:
    reported, found = [*_name_problems(part, source, variables, columns)], list[Problem]()
    node = Resolver(source, columns, variables.names, len(variables.names), found).resolve(part)
    found += _without_variable(node)
    found = [*reported, *elsewhere(found, reported)]
    problems += found
    return None if found else with_functions_inside(node)


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Call) and expression.function == "and":
        for arg in expression.args:
            yield from _conjuncts(arg)
    else:
        yield expression


def variables_in(node: Node) -> frozenset[int]:
    """The numbers of the variables that the node is about."""
    return frozenset(event.stage for event in events_of(node) if event.stage is not None)


def _with_times(expression: Expression, source: Source, variables: Variables) -> Expression:
    """Replaces `start(a)` and `end(a)` by the columns that they mean."""
    match expression:
        case Call(function, (Name((variable,)),), span) if _is_time(function, variable, variables):
            column = variables.columns[_ENDS[function]]
            start, end = span
            quoted = column.replace("`", "``")
            source.literals.append((span, f"`{quoted}`"))
            # The name before the column takes no part of the call's text, so that its SQL is the column alone.
            return Name((variable, column), ((start, start), (start, end)))
        case Call(_, args):
            return replace(expression, args=tuple(_with_times(arg, source, variables) for arg in args))
        case _:
            return expression


def _is_time(function: str, variable: str, variables: Variables) -> bool:
    return function in _ENDS and _number(variable, variables) is not None


def _number(name: str, variables: Variables) -> int | None:
    return next((i for i, known in enumerate(variables.names) if known.lower() == name.lower()), None)


def _name_problems(
    expression: Expression, source: Source, variables: Variables, columns: pa.Schema | None
) -> Iterator[Problem]:
    """Problems of names that are not variables, and of variables that may not be used here."""
    known = [variables.names[i] for i in sorted(variables.allowed)]
    for call in _calls(expression):
        if call.function in ("first", "last", "count", "sum", "avg", "min", "max"):
            hint = "A variable is one event: write a.column."
            message = f"{call.function}(…) looks over several events, and here each variable is one"
            yield Problem(message, source.where, source.text, call.span, hint)
        elif call.function == FILTER:
            hint = f"Write {FILTER}('…') alone, or AND it with other conditions."
            message = f"{FILTER}(…) takes the text of a filter, and stands in no other expression than AND"
            yield Problem(message, source.where, source.text, call.span, hint)
        elif call.function in _ENDS:  # times of variables are columns already
            hint = f"Write {call.function}({known[0]})."
            yield Problem(f"{call.function} takes one variable", source.where, source.text, call.span, hint)
    for name in _names(expression):
        first = name.parts[0]
        number = _number(first, variables)
        if number is not None and number not in variables.allowed:
            hint = "A condition on a negated event belongs to its negation: (!D d WHERE …), without(…, where=…)."
            yield Problem(f"{first!r} is negated", source.where, source.text, name.spans[0], hint)
        elif number is not None and len(name.parts) == 1:
            hint = f"Write {first}.column, start({first}) or end({first})."
            yield Problem(f"{first!r} is an event, not a value", source.where, source.text, name.span, hint)
        elif number is None and len(name.parts) > 1 and not _is_column(first, columns):
            message = f"no event has the variable {first!r}"
            yield Problem(message, source.where, source.text, name.spans[0], did_you_mean(first, known))


def _without_variable(node: Node) -> Iterator[Problem]:
    for column in walk(node):
        if isinstance(column, Column) and column.event == CURRENT:
            name = column.name.parts[0]
            message = f"which event's {name!r}? There is no variable before it"
            yield Problem(message, column.source.where, column.source.text, column.span)


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for arg in expression.args:
            yield from _calls(arg)


def _names(expression: Expression, bound: Sequence[str] = ()) -> Iterator[Name]:
    """The names that a lambda does not bind."""
    match expression:
        case Name(parts) if parts[0].lower() not in bound:
            yield expression
        case Call("lambda", args):
            inner = [arg.parts[0].lower() for arg in args[:-1] if isinstance(arg, Name)]
            yield from _names(args[-1], [*bound, *inner])
        case Call(_, args):
            for arg in args:
                yield from _names(arg, bound)
        case Literal() | Name():
            pass


def _is_column(name: str, columns: pa.Schema | None) -> bool:
    return columns is not None and name.lower() in (known.lower() for known in columns.names)

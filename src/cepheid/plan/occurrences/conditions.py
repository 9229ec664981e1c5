"""Conditions over the variables of occurrences, and over the one event of a restricted type: text → nodes.

Variables take the role of stages, so `cepheid.plan.conditions.resolve` and `cepheid.plan.conditions.lift` do the work:
`v.column` is a column of the variable's event. `start(v)` and `end(v)` are the least and the greatest time in `v`; they
become min and max of the time column. Problems of names are reported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.errors import Problem, did_you_mean
from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.lang.occurrences.expression import RestrictedType
from cepheid.lang.sql.refused import PATTERN_FUNCTIONS
from cepheid.plan.conditions.choices import with_functions_inside
from cepheid.plan.conditions.names import Names
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import (
    CURRENT,
    Apply,
    Called,
    Column,
    Folded,
    Node,
    Pick,
    Resolver,
    Source,
    elsewhere,
    events_of,
    walk,
)

TIMES = {"start": "min", "end": "max"}
"""The functions for the times of a variable, and the functions that the resolver knows in their place."""


_NONE_BOUND = "No variable is bound here: bind one, as in ?v:A[v.column > 1]."


def names_of(variables: Sequence[str]) -> Names:
    """The names of the variables. Each variable has one event or none."""
    return Names(tuple(variables), (0,) * len(variables), 0)


@dataclass(frozen=True)
class VariableTexts:
    """Reads texts whose names are variables."""

    parameters: Parameters
    variables: Sequence[str]
    visible: frozenset[int]
    """The numbers of the variables that the text may use."""
    time: str

    def parse(self, source: Source, problems: list[Problem]) -> Expression | None:
        """The expression of the source's text, None if it has problems."""
        found: list[Problem] = []
        expression = self.read(source, found)
        problems += found
        return None if found else expression

    def read(self, source: Source, problems: list[Problem]) -> Expression | None:
        """As `parse`, but None only if the text cannot be parsed."""
        expression = self.parameters.parse(source, problems)
        if expression is None:
            return None
        names = _Names(self.variables, self.visible, self.time, source, problems)
        return names.rewritten(expression, frozenset())


def variable_condition(
    source: Source, columns: pa.Schema | None, texts: VariableTexts, problems: list[Problem]
) -> Node | None:
    """The condition over the variables that `texts` knows; None if it has problems."""
    reported: list[Problem] = []
    found: list[Problem] = []
    expression = texts.read(source, reported)
    if expression is None:
        problems += reported
        return None
    node = Resolver(source, columns, texts.variables, len(texts.variables), found, measure=True).resolve(expression)
    found = [*reported, *elsewhere(found, reported)]
    problems += found
    return None if found else with_functions_inside(node)


def event_condition(
    restricted: RestrictedType, sql: str, texts: VariableTexts, columns: pa.Schema | None, problems: list[Problem]
) -> Node | None:
    """The condition `sql` of a restricted type over one event, whose columns may have the variable before them; None if
    it has problems.
    """
    source, time, parameters = Source(sql, f"type {restricted.name!r}"), texts.time, texts.parameters
    expression = parameters.parse(source, problems)
    if expression is None:
        return None
    found: list[Problem] = []
    expression = _of_event(expression, restricted.variable, time, source, found)
    node = Resolver(source, columns, (), 0, found).resolve(expression)
    problems += found
    return None if found else node


def of_current_event(node: Node) -> Node | None:
    """A condition about one variable that is an event, as the same condition about the current event. None if it is
    about several variables, or uses starts or ends.
    """
    if len(events_of(node)) > 1 or any(isinstance(part, Folded | Pick | Called) for part in walk(node)):
        return None
    return _of_current(node)


def _of_current(node: Node) -> Node:
    if isinstance(node, Column) and node.event is not None:
        return replace(node, event=CURRENT)
    return replace(node, args=tuple(map(_of_current, node.args))) if isinstance(node, Apply) else node


@dataclass
class _Names:
    """Checks and rewrites the names of one text."""

    variables: Sequence[str]
    visible: frozenset[int]
    time: str
    source: Source
    problems: list[Problem]

    def rewritten(self, expression: Expression, parameters: frozenset[str]) -> Expression:
        """The expression with min and max in place of start and end; `parameters` are those of enclosing lambdas."""
        match expression:
            case Name(parts) if parts[0].lower() in parameters:
                return expression
            case Name():
                return self._checked(expression)
            case Call("start" | "end" as function, (Name(parts=(_,)) as name,)):
                self._look_for(name)
                return Call(TIMES[function], (_time_of(name, self.time, self.source),), expression.span)
            case Call("start" | "end" as function):
                self._problem(f"{function} takes one variable", expression, f"Write {function}({self._known()[0]}).")
            case Call(function) if function in PATTERN_FUNCTIONS:
                hint = "Write v.column, start(v) or end(v)."
                self._problem(
                    f"{function}(…) looks over several events, and a variable is one occurrence", expression, hint
                )
            case Call("lambda", args):
                parameters = parameters | {arg.parts[0].lower() for arg in args[:-1] if isinstance(arg, Name)}
                return replace(expression, args=tuple(self.rewritten(arg, parameters) for arg in args))
            case Call(_, args):
                return replace(expression, args=tuple(self.rewritten(arg, parameters) for arg in args))
        return expression

    def _known(self) -> list[str]:
        return [self.variables[number] for number in sorted(self.visible)] or ["v"]

    def _problem(self, message: str, at: Name | Call, hint: str) -> None:
        span = at.spans[0] if isinstance(at, Name) else at.span
        self.problems.append(Problem(message, self.source.where, self.source.text, span, hint))

    def _number(self, name: Name) -> int | None:
        """The number of the variable that the name begins with."""
        written = name.parts[0].lower()
        return next((i for i, known in enumerate(self.variables) if known.lower() == written), None)

    def _look_for(self, name: Name) -> bool:
        """Whether the variable is known here; otherwise the problem is reported."""
        written, number = name.parts[0], self._number(name)
        if number in self.visible:
            return True
        if number is None:
            hint = did_you_mean(written, self._known()) if self.visible else _NONE_BOUND
            self._problem(f"no variable is named {written!r}", name, hint)
        else:
            hint = f"It is bound elsewhere in the pattern. Known here: {', '.join(self._known())}"
            self._problem(f"the variable {written!r} is not known here", name, hint)
        return False

    def _checked(self, name: Name) -> Name:
        written = name.parts[0]
        if len(name.parts) == 1 and self._number(name) is None:
            hint = f"Write {' or '.join(f'{known}.{written}' for known in self._known()[:3])}."
            hint = hint if self.visible else f"{hint} {_NONE_BOUND}"
            self._problem(f"whose {written!r}? A column needs a variable before it", name, hint)
        elif self._look_for(name) and len(name.parts) == 1:
            hint = f"Write {written}.column, start({written}) or end({written})."
            self._problem(f"{written!r} is an occurrence, not a value", name, hint)
        return name


def _time_of(name: Name, time: str, source: Source) -> Call:
    """The time of the variable, as a column. It is wrapped in coalesce, so that it differs from `v.time`, which only
    events have.
    """
    source.literals.append((name.span, f"coalesce(`{time.replace('`', '``')}`)"))
    return Call("coalesce", (Name((name.parts[0], time), (name.span, name.span)),), name.span)


def _of_event(
    expression: Expression, variable: str | None, time: str, source: Source, problems: list[Problem]
) -> Expression:
    """The expression with columns in place of `variable.column`, `start(variable)` and `end(variable)`."""
    match expression:
        case Call("start" | "end" as function, args):
            if len(args) == 1 and isinstance(args[0], Name) and _is(args[0], variable) and len(args[0].parts) == 1:
                source.literals.append((expression.span, f"`{time.replace('`', '``')}`"))
                return Name((time,), (expression.span,))
            hint = f"Write {function}({variable or 'v'}), with the variable of the declaration, as in T = ?v:A[…]."
            problems.append(Problem(f"{function} takes one variable", source.where, source.text, expression.span, hint))
        case Call(function) if function in PATTERN_FUNCTIONS:
            message = f"{function}(…) looks over several events, and a restricted type is about one"
            problems.append(Problem(message, source.where, source.text, expression.span))
            return Literal(None, pa.null(), expression.span)
        case Call(_, args):
            return replace(expression, args=tuple(_of_event(arg, variable, time, source, problems) for arg in args))
        case Name(parts, spans) if len(parts) > 1 and _is(expression, variable):
            source.edits.append(((spans[0][0], spans[1][0]), ""))
            return Name(parts[1:], spans[1:])
    return expression


def _is(name: Name, variable: str | None) -> bool:
    return variable is not None and name.parts[0].lower() == variable.lower()

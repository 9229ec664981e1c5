"""The texts of a pattern → expressions, with literals in place of parameters. Also finds the problems of parameters.

A parameter that is declared, given and used is valid. All others are reported here, whether the pattern was written in
Python, in a file or on a command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

import pyarrow as pa

from cepheid.errors import PatternError, Problem, did_you_mean
from cepheid.lang.expression import Call, Expression, Literal, Span
from cepheid.lang.parameters import NAME, Parameter, without_parentheses
from cepheid.lang.sql.parser import parse_expression
from cepheid.lang.sql.tokens import Kind, tokenize
from cepheid.plan.conditions.resolve import Source

_MOST_SHOWN = 200
"""Letters of a list that are shown."""
_GIVE = "Give it: with_parameters({0}=…), --parameter {0}=… on the command line, or a value in the pattern file."


class Parametrised(Protocol):
    """A pattern of any kind: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def parameters(self) -> Sequence[Parameter]: ...


P = TypeVar("P", bound=Parametrised)


def with_nulls(pattern: P) -> P:
    """The pattern with NULL as the value of each parameter that must still be given."""
    parameters = [replace(parameter, sql=parameter.sql or "(NULL)") for parameter in pattern.parameters]
    return replace(pattern, parameters=tuple(parameters))


def described(parameters: Sequence[Parameter]) -> Iterator[str]:
    """One line per parameter, for people to read."""
    for parameter in parameters:
        yield f"Parameter: ${parameter.name} = {_described_value(parameter)}"


def _described_value(parameter: Parameter) -> str:
    if parameter.sql is None:
        return "must be given"
    if not parameter.is_list:
        return without_parentheses(parameter.sql)
    if len(parameter.sql) <= _MOST_SHOWN:
        return f"({parameter.sql})"
    assert isinstance(parameter.value, tuple)
    return f"({parameter.sql[:_MOST_SHOWN]}…), {len(parameter.value):,} values"


class Parameters:
    """The parameters of a pattern, and which of them its texts have used so far."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._sql = {parameter.name: parameter.sql for parameter in parameters}
        self._values = {one.name: _value(one.sql, is_list=one.is_list) for one in parameters if one.sql is not None}
        self._used: set[str] = set()
        self._reported: set[str] = set()

    def parse(self, source: Source, problems: list[Problem]) -> Expression | None:
        """The expression of the source's text, None if it has problems. The SQL of the text's parameters is added to
        `source.literals`.
        """
        found: list[Problem] = []
        try:
            written = [token for token in tokenize(source.text) if token.kind is Kind.PARAMETER]
        except PatternError:
            written = []  # the parser reports it
            self._used |= set(re.findall(rf"\$({NAME})", source.text))
        for token in written:
            name = token.text.removeprefix("$")
            self._used.add(name)
            sql = self._sql.get(name)
            if sql is None:
                found += self._missing(name, source.where, source.text, token.span)
            source.literals.append((token.span, sql or "NULL"))
        null: Literal | tuple[Literal, ...] = Literal(None, pa.null(), (0, 0))
        unknown = dict.fromkeys((token.text.removeprefix("$") for token in written), null)
        expression = None
        try:
            expression = parse_expression(source.text, unknown | self._values)
        except PatternError as error:
            found += [replace(problem, where=source.where) for problem in error.problems]
        problems += found
        return None if found else expression

    def use(self, name: str, where: str) -> Problem | None:
        """Marks a parameter as used by a length or a count at `where`; the problem if it has no value."""
        self._used.add(name)
        return next(self._missing(name, where), None) if self._sql.get(name) is None else None

    def _missing(
        self, name: str, where: str | None, text: str | None = None, span: Span | None = None
    ) -> Iterator[Problem]:
        """The problem of a parameter without a value, placed where the name is first used."""
        if name in self._reported:
            return
        self._reported.add(name)
        declared, others = name in self._sql, [other for other in self._sql if other.casefold() == name.casefold()]
        message = f"the parameter {name!r} has no value" if declared else f"no parameter is named {name!r}"
        hint = _GIVE.format(name)
        if others and not declared:
            self._used |= {*others}  # reporting it as unused would repeat the problem
            hint = f"Names are case-sensitive, and {others[0]!r} is there. Write ${others[0]}, or name it {name!r}."
        elif self._sql and not declared:
            hint += f" {did_you_mean(name, list(self._sql))}"
        yield Problem(message, where, text, span, hint)

    def unused(self) -> Iterator[Problem]:
        """The parameters that no text uses, once all texts are parsed."""
        known = sorted(self._used)
        for name in self._sql:
            if name not in self._used:
                hint = did_you_mean(name, known) if known else "Nothing in the pattern is a parameter: leave it out."
                message = f"the parameter {name!r} is not used: no condition, measure, length or count has ${name}"
                yield Problem(message, f"parameter {name!r}", hint=hint)


def _value(sql: str, *, is_list: bool) -> Literal | tuple[Literal, ...]:
    """The literal of a value, or the literals of a list."""
    parsed = parse_expression(f"NULL IN ({sql})" if is_list else sql)
    literals = parsed.args[1:] if isinstance(parsed, Call) else (parsed,)
    found = tuple(literal for literal in literals if isinstance(literal, Literal))
    assert len(found) == len(literals), sql
    return found if is_list else found[0]

"""The `where` of a subscription: a condition over the columns of a match's row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.errors import ConditionError, PatternError, Problem
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.durable.routing.subscription import DeadLetter, Letter
from cepheid.hosts.sources.records import json_parser
from cepheid.lang.expression import Call, Expression, Name
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.conditions.resolve import Resolver, Source, tree_of
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.lifted import Lifted

_WHERE = "where"
_IN_JSON = (
    arrow.is_boolean,
    arrow.is_integer,
    arrow.is_floating,
    arrow.is_decimal,
    arrow.is_string,
    arrow.is_large_string,
    arrow.is_timestamp,
    arrow.is_date,
)


def readable(columns: pa.Schema) -> pa.Schema:
    """The columns whose values can be read from a row's JSON."""
    return pa.schema([field for field in columns if any(is_of(field.type) for is_of in _IN_JSON)])


def joined_columns(schemas: Sequence[pa.Schema]) -> tuple[pa.Schema, list[str]]:
    """The columns of the rows of several patterns, and the faults: columns of one name and several types."""
    fields: dict[str, pa.Field] = {}
    all_ = [field.with_nullable(nullable=True) for schema in schemas for field in readable(schema)]
    for field in all_:
        fields.setdefault(field.name, field)
    faults = [
        f"column {field.name!r} is of type {sql_name(known.type)} in one pattern and of type "
        f"{sql_name(field.type)} in another: subscribe to one of them, or rename the column"
        for field in all_
        if (known := fields[field.name]).type != field.type
    ]
    return pa.schema(fields.values()), faults


def checked_condition(text: str, columns: pa.Schema) -> Expression:
    """The condition as a tree.

    Raises:
        PatternError: it is no condition over these columns; the error has all problems.
    """
    source = Source(text, _WHERE)
    problems: list[Problem] = []
    try:
        expression = parse_expression(text)
        tree = tree_of(Resolver(source, columns, (), 0, problems).resolve(expression))
        type_ = pa.bool_() if problems else DuckDbEngine().type_of(tree, columns)
        if not (arrow.is_boolean(type_) or arrow.is_null(type_)):
            problems.append(Problem(f"a condition must be BOOLEAN, this is {sql_name(type_)}", span=expression.span))
        if not problems:
            return tree
    except PatternError as error:
        problems += error.problems
    raise PatternError([replace(problem, where=_WHERE, text=text) for problem in problems])


class Condition:
    """A condition that chooses letters. Only one thread may use it."""

    def __init__(self, text: str, columns: pa.Schema) -> None:
        """
        Raises:
            PatternError: it is no condition over these columns.
        """
        tree = checked_condition(text, columns)
        used = {name.lower() for name in _columns_of(tree)}
        self._columns = pa.schema([field for field in columns if field.name.lower() in used])
        self._lifted = [Lifted(text, tree, pa.bool_())]
        self._engine = DuckDbEngine()

    def chosen(self, letters: Sequence[Letter]) -> tuple[list[Letter], list[DeadLetter]]:
        """The letters for which the condition is true, and those on which it fails, as by a division by zero."""
        if not letters:
            return [], []
        try:
            return [letter for letter, true in zip(letters, self._truths(letters), strict=True) if true], []
        except (ConditionError, pa.ArrowException) as error:
            if len(letters) == 1:
                return [], [DeadLetter(letters[0], 0, f"where: {error}")]
        middle = len(letters) // 2
        (first, failed), (second, failed_too) = self.chosen(letters[:middle]), self.chosen(letters[middle:])
        return first + second, failed + failed_too

    def _truths(self, letters: Sequence[Letter]) -> list[bool | None]:
        rows = parsed(self._columns, letters)
        truths: list[bool | None] = self._engine.evaluate(rows, values=self._lifted).values[0].to_pylist()
        return truths


def parsed(columns: pa.Schema, letters: Sequence[Letter]) -> pa.Table:
    """These columns of the letters' rows; a missing one is NULL."""
    if not columns.names:  # a table without columns has no rows either
        return pa.table({"none": pa.nulls(len(letters))})
    return json_parser(columns)([letter.content.encode() for letter in letters])


def _columns_of(expression: Expression) -> Iterator[str]:
    match expression:
        case Name(parts):
            yield parts[0]
        case Call(_, args):
            for argument in args:
                yield from _columns_of(argument)

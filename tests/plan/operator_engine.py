"""An engine that only knows operators, which is enough to build plans without a host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.plan.conditions.result_types import type_of_call
from cepheid.plan.conditions.script_functions import SCRIPT_FUNCTIONS
from cepheid.plan.engine import Question

TypeOfName: TypeAlias = Callable[[Name], pa.DataType]


def type_of_expression(expression: Expression, type_of_name: TypeOfName) -> pa.DataType:
    """The type of an expression over columns, by Cepheid's own rules of types."""
    match expression:
        case Literal():
            return expression.type
        case Name():
            return type_of_name(expression)
        case Call(function, args, span):
            types = [type_of_expression(arg, type_of_name) for arg in args]
            if function in _OF_HOSTS:
                return _OF_HOSTS[function](types)
            if function not in SCRIPT_FUNCTIONS:
                raise PatternError(Problem(f"unknown function {function!r}", span=span))
            return type_of_call(expression, types)


_OF_HOSTS: dict[str, Callable[[Sequence[pa.DataType]], pa.DataType]] = {
    "concat": lambda _: pa.string(),
    "index": lambda types: types[0].value_type,
    "like": lambda _: pa.bool_(),
    "try_cast": lambda types: types[1],
}
"""Some functions that scripts do not know, so that plans have something to lift."""


class OperatorTypes:
    """Types operators as Spark does, and refuses most functions."""

    time_zone = "UTC"

    def types_of(self, questions: Sequence[Question], columns: pa.Schema) -> Sequence[pa.DataType | Problem]:
        def type_of_name(name: Name) -> pa.DataType:
            type_ = columns.field(name.parts[0]).type
            for part in name.parts[1:]:
                type_ = type_.field(part).type
            return type_

        def answer(tree: Expression) -> pa.DataType | Problem:
            try:
                return type_of_expression(tree, type_of_name)
            except PatternError as error:
                return error.problems[0]

        return [answer(tree) for tree, _ in questions]

"""An engine that knows operators alone, which is enough to build plans without a host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from cepheid.errors import PatternError, Problem
from cepheid.events import Schema
from cepheid.lang.expression import Expression, Name
from cepheid.lang.pattern import Pattern
from cepheid.plan.build import build_plan
from cepheid.plan.plan import Plan
from cepheid.plan.types import type_of_expression

SCHEMA = Schema(
    pa.schema(
        [
            ("key", pa.string()),
            ("time", pa.timestamp("us", "UTC")),
            ("s", pa.string()),
            ("n", pa.int32()),
            ("b", pa.int64()),
            ("x", pa.float64()),
            ("f", pa.float32()),
            ("price", pa.decimal128(8, 2)),
            ("d", pa.date32()),
            ("ok", pa.bool_()),
            ("place", pa.struct([("city", pa.string())])),
            ("tags", pa.list_(pa.string())),
        ]
    ),
    ("key",),
    "time",
)


class OperatorTypes:
    """Types operators as Spark does, and refuses every other function."""

    name = "operators"

    def types_of(
        self, questions: Sequence[tuple[Expression, str]], columns: pa.Schema
    ) -> Sequence[pa.DataType | Problem]:
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


@pytest.fixture
def plan() -> Callable[..., Plan]:
    """Builds the plan of a pattern over the tests' schema; `schema`, `columns` and `measures` as for `build_plan`."""

    def build(pattern: Pattern, schema: Schema = SCHEMA, **options: object) -> Plan:
        return build_plan(pattern, schema, OperatorTypes(), **options)  # type: ignore[arg-type]

    return build

"""Plans of patterns over one schema, built without a host."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.plan.operator_engine import OperatorTypes

from cepheid.events.batch import Schema
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.build import build_plan
from cepheid.plan.stages.plan import Plan

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


@pytest.fixture
def plan() -> Callable[..., Plan]:
    """Builds the plan of a pattern over the tests' schema; `schema`, `columns` and `measures` are
    those of `build_plan`.
    """

    def build(pattern: Pattern, schema: Schema = SCHEMA, **options: object) -> Plan:
        return build_plan(pattern, schema, OperatorTypes(), **options)  # type: ignore[arg-type]

    return build

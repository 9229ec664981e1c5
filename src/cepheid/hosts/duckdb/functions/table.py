"""The functions that are templates of DuckDB SQL, each of which gives Spark's result exactly.

Tests compare the values, types and failures of every function with Spark, on generated calls with arguments of every
type. The page `docs/reference/functions.md` is generated from here.
"""

from __future__ import annotations

from cepheid.hosts.duckdb.functions.function import Function, same
from cepheid.hosts.duckdb.functions.numbers import NUMBERS
from cepheid.hosts.duckdb.functions.texts import TEXTS
from cepheid.hosts.duckdb.functions.times import TIMES

FUNCTIONS: tuple[Function, ...] = (
    *NUMBERS,
    *TEXTS,
    *TIMES,
    *same("size cardinality array_size", ("ARRAY",), "INT", "CAST(len({0}) AS INTEGER)", "NULL for a NULL array."),
)

BY_NAME: dict[str, list[Function]] = {}
for _function in FUNCTIONS:
    BY_NAME.setdefault(_function.name, []).append(_function)

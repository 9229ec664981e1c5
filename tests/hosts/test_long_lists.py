"""IN with many constants, which become a table, is what it is with few."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.errors import ConditionError
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.duckdb.lists import LONG
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.lifted import Lifted

TEXTS = ", ".join(["'it''s'", r"'a\\b'", *(f"'t{number}'" for number in range(LONG))])
NUMBERS = ", ".join(map(str, [*range(LONG), 2**40]))
ROWS = 5000


def evaluated(sql: str, events: pa.Table | None = None) -> list[bool | None]:
    lifted = Lifted(sql, parse_expression(sql), pa.bool_())
    (found,) = DuckDbEngine().evaluate(table() if events is None else events, values=[lifted]).values
    return list(found.to_pylist())


def table() -> pa.Table:
    texts = ["t1", None, "x", "it's", "a\\b"] * (ROWS // 5)
    numbers = [1, 2**40, None, -1, 99] * (ROWS // 5)
    return pa.table({"s": pa.array(texts), "n": pa.array(numbers, pa.int64()), "row": pa.array(range(ROWS))})


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"s IN ({TEXTS})", [True, None, False, True, True]),
        (f"s NOT IN ({TEXTS})", [False, None, True, False, False]),
        (f"n IN ({NUMBERS})", [True, True, None, False, True]),
        (
            f"CASE WHEN s IN ({TEXTS}) AND n IN ({NUMBERS}) THEN n > 1 ELSE FALSE END",
            [False, False, False, False, True],
        ),
        (f"(s IN ({TEXTS})) IS NULL", [False, True, False, False, False]),
        (f"s IN ({TEXTS}, NULL)", [True, None, None, True, True]),
        (f"n IN ({NUMBERS}, 0.5)", [True, True, None, False, True]),
        (f"substring(s, 1, 2) IN ({TEXTS})", [True, None, False, False, False]),
    ],
)
def test_long_lists(sql: str, expected: list[bool | None]) -> None:
    """The results are in the order of the events."""
    assert evaluated(sql) == expected * (ROWS // 5)


def test_guarded() -> None:
    """A value that can fail is not computed where its guard is false."""
    sql = f"s = 'no' AND CAST(s AS INT) IN ({NUMBERS})"
    assert not any(evaluated(sql))
    with pytest.raises(ConditionError):
        evaluated(sql.replace("'no'", "'t1'"))


def test_requests_in_turn() -> None:
    """The tables of an earlier request are not those of a later one."""
    engine, events = DuckDbEngine(), table()
    for sql, count in ((f"s IN ({TEXTS})", 3), (f"n IN ({NUMBERS})", 3), ("s = 'x'", 1), (f"s IN ({TEXTS})", 3)):
        bits = [Lifted(sql, parse_expression(sql), pa.bool_())]
        assert engine.evaluate(events, bits=bits).masks[0].sum() == count * (ROWS // 5)

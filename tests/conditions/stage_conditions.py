"""Conditions over the events of stages, each as SQL and as plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
Truth: TypeAlias = bool | None
"""None: unknown."""
Check: TypeAlias = Callable[[Row, Rows], Truth]
"""The current event, and the events that the named stage has so far."""


def total(rows: Rows, column: str) -> Any:
    """SQL's sum: NULLs are ignored, and the sum of no values is NULL."""
    values = present(rows, column)
    start = Decimal(0) if column == "price" else 0
    return sum(values, start) if values else None


def average(rows: Rows, column: str) -> Any:
    """SQL's avg; the average of decimals has four more digits, rounded half up."""
    values = present(rows, column)
    if not values:
        return None
    if column == "price":
        return (sum(values, Decimal(0)) / len(values)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
    return float(sum(values)) / len(values)


def least(rows: Rows, column: str) -> Any:
    return min(present(rows, column), key=rank, default=None)


def greatest(rows: Rows, column: str) -> Any:
    return max(present(rows, column), key=rank, default=None)


def nth(rows: Rows, column: str, place: int) -> Any:
    """The value at `place`, counted from the end if negative; NULL if there is no such event."""
    return rows[place][column] if -len(rows) <= place < len(rows) else None


def present(rows: Rows, column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def rank(value: Any) -> Any:
    """A key by which Python orders like SQL: NaN equals itself and is greatest, strings are ordered by their bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value


def less(a: Any, b: Any) -> Truth:
    return None if a is None or b is None else bool(rank(a) < rank(b))


def equal(a: Any, b: Any) -> Truth:
    return None if a is None or b is None else bool(rank(a) == rank(b))


def either(a: Truth, b: Truth) -> Truth:
    return True if a or b else None if a is None or b is None else False


CURRENT: dict[str, Check] = {
    "kind = 'a'": lambda e, _: equal(e["kind"], "a"),
    "kind <> 'a'": lambda e, _: None if e["kind"] is None else e["kind"] != "a",
    "kind IN ('a', 'b')": lambda e, _: None if e["kind"] is None else e["kind"] in "ab",
    "n > 1": lambda e, _: less(1, e["n"]),
    "n IS NOT NULL": lambda e, _: e["n"] is not None,
    "x < 1.5": lambda e, _: less(e["x"], 1.5),
    "price >= 1": lambda e, _: None if e["price"] is None else e["price"] >= 1,
}
"""Conditions on the current event alone."""

ACROSS: dict[str, Check] = {
    "kind = {s}.kind": lambda e, s: equal(e["kind"], nth(s, "kind", -1)),
    "kind < last({s}.kind)": lambda e, s: less(e["kind"], nth(s, "kind", -1)),
    "{s}.n IS NULL OR n > {s}.n": lambda e, s: either(nth(s, "n", -1) is None, less(nth(s, "n", -1), e["n"])),
    "x > first({s}.x)": lambda e, s: less(nth(s, "x", 0), e["x"]),
    "price <> first({s}.price, 1)": lambda e, s: (
        None if (same := equal(e["price"], nth(s, "price", 1))) is None else not same
    ),
    "n <=> last({s}.n, 1)": lambda e, s: e["n"] == nth(s, "n", -2),
    "NOT (x < last({s}.x, 2))": lambda e, s: None if (t := less(e["x"], nth(s, "x", -3))) is None else not t,
    "count({s}) < 2": lambda _, s: len(s) < 2,
    "count({s}.n) = count({s})": lambda _, s: len(present(s, "n")) == len(s),
    "coalesce(sum({s}.n), 0) <= n + 1": lambda e, s: None if e["n"] is None else (total(s, "n") or 0) <= e["n"] + 1,
    "sum({s}.x) > x": lambda e, s: less(e["x"], _float(total(s, "x"))),
    "sum({s}.price) < price * 2": lambda e, s: less(total(s, "price"), None if e["price"] is None else e["price"] * 2),
    "avg({s}.n) >= n": lambda e, s: None if (t := less(average(s, "n"), _float(e["n"]))) is None else not t,
    "avg({s}.x) = x": lambda e, s: equal(average(s, "x"), e["x"]),
    "avg({s}.price) < price": lambda e, s: less(average(s, "price"), e["price"]),
    "min({s}.n) < n": lambda e, s: less(least(s, "n"), e["n"]),
    "max({s}.x) > x": lambda e, s: less(e["x"], greatest(s, "x")),
    "max({s}.kind) = kind": lambda e, s: equal(greatest(s, "kind"), e["kind"]),
    "count(DISTINCT {s}.kind) < 2": lambda _, s: len({*present(s, "kind")}) < 2,
    "count(DISTINCT {s}.x) > n": lambda e, s: less(e["n"], len({rank(x) for x in present(s, "x")})),
    "x > avg({s}.x) + 2 * stddev({s}.x)": lambda e, s: less(_above(s, "x"), e["x"]),
    "var_pop({s}.n) + 0.15D < n": lambda e, s: less(_spread(s, "n"), _float(e["n"])),
    "sqrt({s}.x * x + 1) < x": lambda e, s: less(_root(nth(s, "x", -1), e["x"]), e["x"]),
    "min({s}.price) = price": lambda e, s: equal(least(s, "price"), e["price"]),
}
"""Conditions on the current event and those of the stage that stands for {s}."""


def _above(rows: Rows, column: str) -> float | None:
    """Two deviations of a sample above the average."""
    values = present(rows, column)
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return mean + 2 * math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _spread(rows: Rows, column: str) -> float | None:
    values = present(rows, column)
    if not values:
        return None
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / len(values) + 0.15


def _root(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else math.sqrt(left * right + 1)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)

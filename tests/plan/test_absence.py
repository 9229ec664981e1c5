"""Conditions that say only what others need are not evaluated."""

from __future__ import annotations

import pytest

from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.conditions.absence import follows

NEED_A = [
    *("a = 1", "1 < a + b", "a", "a IN (1, b)", "NOT a LIKE 'x%'", "a BETWEEN b AND 3", "c BETWEEN a AND a"),
    *(
        "a = 1 AND b IS NULL",
        "(a = 1 AND c > 0) OR a = b",
        "coalesce(a, a + 1) > 0",
        "array_contains(split('x', ','), a)",
    ),
    *("CASE WHEN a = 1 THEN b WHEN c THEN NULL ELSE length(a) END > 0", "CASE WHEN b THEN a ELSE a + 1 END"),
]
DO_NOT = [
    *("b = 1", "a IS NULL", "a IS NOT NULL", "NOT a IS NULL", "a <=> 1", "coalesce(a, b) = 1", "b IN (1, a)"),
    *("a = 1 OR b = 1", "b BETWEEN a AND c", "CASE WHEN a = 1 THEN b ELSE c END", "CASE WHEN b THEN c ELSE a END"),
    *("concat_ws('', a) = 'x'", "s.a = 1"),
]


GIVEN = parse_expression("a IS NOT NULL")


@pytest.mark.parametrize("other", NEED_A)
def test_needed(other: str) -> None:
    """That a column is not NULL follows from a condition which is not true otherwise."""
    assert follows(GIVEN, [parse_expression("x = y"), parse_expression(other), GIVEN])


@pytest.mark.parametrize("other", DO_NOT)
def test_not_needed(other: str) -> None:
    """It does not follow from a condition which may be true for NULL, nor from itself."""
    assert not follows(GIVEN, [parse_expression("x = y"), parse_expression(other), GIVEN])


@pytest.mark.parametrize("condition", ["a IS NOT NULL AND b IS NOT NULL", "a IS NOT NULL OR c IS NOT NULL"])
def test_several(condition: str) -> None:
    """All columns of an AND must be needed, and of an OR one."""
    given = parse_expression(condition)
    assert follows(given, [parse_expression("a = b"), given])


@pytest.mark.parametrize(
    "condition",
    [
        "a IS NOT NULL AND c IS NOT NULL",
        "c IS NOT NULL OR d IS NOT NULL",
        "a IS NOT NULL AND a < 5",
        "a + 1 IS NOT NULL",
    ],
)
def test_more_is_said(condition: str) -> None:
    """What says more than that needed columns are not NULL is evaluated."""
    given = parse_expression(condition)
    assert not follows(given, [parse_expression("a = b"), given])

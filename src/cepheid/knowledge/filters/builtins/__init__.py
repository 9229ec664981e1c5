"""The built-ins of SWRL (W3C submission of 21 May 2004, section 8). Those of lists and URIs, and `tan`, `tokenize` and
`subtractDateTimesYieldingYearMonthDuration`, are not available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cepheid.knowledge.filters.builtins import numbers, texts, times
from cepheid.knowledge.filters.values import NoValue, Value, compared


class Builtin(NamedTuple):
    """A built-in."""

    apply: Callable[..., Value]
    """Computes the first argument from the others, or tests all of them. Raises NoValue if it cannot."""
    computes: bool
    least: int
    most: int | None
    """How many arguments it has, with the first; None: any number."""


def _comparison(accept: Callable[[int], bool], *, ordered: bool) -> Callable[[Value, Value], bool]:
    def test(one: Value, other: Value) -> bool:
        if ordered and isinstance(one, bool):
            raise NoValue("booleans have no order")
        found = compared(one, other)
        return found is not None and accept(found)

    return test


def _not_equal(one: Value, other: Value) -> bool:
    return compared(one, other) != 0


def _computing(apply: Callable[..., Value], least: int, most: int | None) -> Builtin:
    """`least` and `most` count the arguments after the first."""
    return Builtin(apply, computes=True, least=least + 1, most=None if most is None else most + 1)


_COMPARISONS: Mapping[str, Callable[[Value, Value], bool]] = {
    "equal": _comparison(lambda found: found == 0, ordered=False),
    "notEqual": _not_equal,
    "lessThan": _comparison(lambda found: found < 0, ordered=True),
    "lessThanOrEqual": _comparison(lambda found: found <= 0, ordered=True),
    "greaterThan": _comparison(lambda found: found > 0, ordered=True),
    "greaterThanOrEqual": _comparison(lambda found: found >= 0, ordered=True),
}

BUILTINS: Mapping[str, Builtin] = {
    **{name: Builtin(test, computes=False, least=2, most=2) for name, test in _COMPARISONS.items()},
    **{
        name: Builtin(test, computes=False, least=least, most=most)
        for name, (test, least, most) in texts.TESTED.items()
    },
    **{
        name: _computing(numbers.guarded(apply), least, most)
        for computed in (numbers.COMPUTED, texts.COMPUTED, times.COMPUTED)
        for name, (apply, least, most) in computed.items()
    },
}
"""By local name."""

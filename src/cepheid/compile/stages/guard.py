"""Guards: when an edge may be followed, as a boolean function of the conditions of a pattern.

A guard is a sum of products, at most one of which is true. So an edge with several terms becomes several edges, at most
one of which holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True, order=True)
class Demand:
    """The demand that condition number `condition` of the plan is true. If negated, the demand that it is not true: it
    is false or unknown.
    """

    condition: int
    negated: bool = False

    def __invert__(self) -> Demand:
        return Demand(self.condition, not self.negated)


@dataclass(frozen=True)
class Guard:
    """True if all demands of one of the terms are met. No two terms can be met at once."""

    terms: tuple[frozenset[Demand], ...]

    def __and__(self, other: Guard) -> Guard:
        products = (mine | its for mine in self.terms for its in other.terms)
        return Guard(tuple(term for term in products if not any(~demand in term for demand in term)))

    def __invert__(self) -> Guard:
        return reduce(Guard.__and__, (_not(term) for term in self.terms), ALWAYS)

    def __or__(self, other: Guard) -> Guard:
        return Guard((*self.terms, *(other & ~self).terms))


def _not(term: frozenset[Demand]) -> Guard:
    """Not a, or a and not b, or a and b and not c, and so on."""
    demands = sorted(term)
    return Guard(tuple(frozenset((*demands[:i], ~demand)) for i, demand in enumerate(demands)))


ALWAYS = Guard((frozenset(),))
NEVER = Guard(())


def condition(number: int) -> Guard:
    """The guard that a condition is true."""
    return Guard((frozenset({Demand(number)}),))


def any_of(guards: Iterable[Guard]) -> Guard:
    """The guard that one of the guards is true."""
    return reduce(Guard.__or__, guards, NEVER)

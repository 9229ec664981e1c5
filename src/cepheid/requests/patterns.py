"""The patterns of a request, and their measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from cepheid.errors import PatternError, Problem
from cepheid.families import FAMILIES, family_of
from cepheid.families.family import Family
from cepheid.lang.arguments import brief
from cepheid.plan.pattern_request import PatternRequest
from cepheid.requests.arguments import checked_measures, measures_of_each

Measures: TypeAlias = Mapping[str, str] | Mapping[str, Mapping[str, str]]
"""Output column → SQL; with several patterns, pattern name → output column → SQL."""


def asked_patterns(pattern: object, measures: object, faults: list[str]) -> tuple[PatternRequest[Any], ...]:
    """The patterns with their measures. Patterns in a mapping get their keys there as names.

    Raises:
        PatternError: one is no pattern, or is of another kind than the others.
    """
    if not isinstance(pattern, Mapping):
        if family_of(pattern) is None:
            raise PatternError(_not_a_pattern(pattern))
        return (PatternRequest(pattern, None if measures is None else checked_measures(measures, faults)),)
    named = _named(pattern)
    wanted = None if measures is None else measures_of_each(measures, [*pattern], faults)
    return tuple(PatternRequest(one, None if wanted is None else wanted.get(one.name, {})) for one in named)


def _named(patterns: Mapping[object, Any]) -> list[Any]:
    """The patterns, each renamed to its key in the mapping."""
    if not patterns:
        raise PatternError("no pattern is given: name one at least, as in {'late': Pattern.begin('departure')}")
    family = _common_family(patterns)
    problems, named = list[Problem](), list[Any]()
    for name, pattern in patterns.items():
        if not isinstance(name, str) or not name:
            problems.append(Problem(f"a pattern's name is text that is not empty, got {name!r}"))
        elif family_of(pattern) is not family:
            problems.append(Problem(_of_another_kind(pattern, family)).of_pattern(name))
        else:
            named.append(replace(pattern, name=name))
    if problems:
        raise PatternError(problems)
    return named


def _common_family(patterns: Mapping[object, Any]) -> Family:
    """The kind of the first value that is a pattern."""
    kinds = (family for pattern in patterns.values() if (family := family_of(pattern)) is not None)
    return next(kinds, FAMILIES[0])


def _of_another_kind(given: object, family: Family) -> str:
    if (advice := _advice(given)) is not None:
        return advice
    if (other := family_of(given)) is None:
        return _not_a_pattern(given)
    return f"several patterns must be of one kind ({family.kind}): {family.noun} is expected, got {other.noun}"


def _not_a_pattern(given: object) -> str:
    if isinstance(given, list | tuple | set) and any(family_of(one) is not None for one in given):
        what = f"a {type(given).__name__} of {len(given)}"
        return f"several patterns are given with their names, as in {{'late': …, 'lost': …}}, got {what}"
    made = "Pattern.begin(…), OccurrencePattern.of(…) or IntervalPattern.of(…)"
    return _advice(given) or f"a pattern is made with {made}, or read with read_pattern(path), got {brief(given)}"


def _advice(given: object) -> str | None:
    """How to make a pattern from `given`, which is not one yet; None if no kind of pattern has advice."""
    return next((advice for family in FAMILIES if (advice := family.advice(given)) is not None), None)

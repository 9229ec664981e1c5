"""Compares what FlinkCEP and Cepheid emit: matches as multisets or, if the pattern has groups, as sets; timeouts as
sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.conformance.case import Answer, Match
from tests.conformance.shown import match_text


@dataclass(frozen=True)
class Found:
    """What a host emits, in the form of `Answer`; None is what the host does not report."""

    matches: tuple[Match, ...]
    matches_at: tuple[int, ...] | None = None
    timeouts: tuple[tuple[Match, int], ...] | None = None
    timeouts_at: tuple[int, ...] | None = None
    late: frozenset[int] | None = None


def difference(expected: Answer, found: Found, *, as_sets: bool) -> str | None:
    """The differences as text; None if there are none.

    FlinkCEP emits some matches of groups several times and Cepheid does not; therefore sets are compared.
    """
    wanted_at, got_at = _if_both_known(expected.matches, expected.matches_at, found.matches_at)
    wanted, got = _matches(expected.matches, wanted_at), _matches(found.matches, got_at)
    lines = [*(_only_on_one_side(set(wanted), set(got)) if as_sets else _only_on_one_side(wanted, got))]
    if found.timeouts is not None:
        wanted_at, got_at = _if_both_known(expected.timeouts, expected.timeouts_at, found.timeouts_at)
        lines += _only_on_one_side(set(_timeouts(expected.timeouts, wanted_at)), set(_timeouts(found.timeouts, got_at)))
    if found.late is not None:
        lines += _only_on_one_side({f"{i} late" for i in expected.late}, {f"{i} late" for i in found.late})
    return "\n".join(lines) or None


def _if_both_known(
    what: Sequence[object], expected_at: Sequence[int], found_at: Sequence[int] | None
) -> tuple[Sequence[int] | None, Sequence[int] | None]:
    """The events that caused the emissions, if both sides have them; neither a case nor a host must."""
    both = found_at is not None and len(expected_at) == len(what)
    return (expected_at, found_at) if both else (None, None)


def _matches(matches: Sequence[Match], at: Sequence[int] | None) -> list[str]:
    return [match_text(match) + cause for match, cause in zip(matches, _causes(at, len(matches)), strict=True)]


def _timeouts(timeouts: Sequence[tuple[Match, int]], at: Sequence[int] | None) -> list[str]:
    causes = _causes(at, len(timeouts))
    return [f"{match_text(match)} timed out @{ts}{by}" for (match, ts), by in zip(timeouts, causes, strict=True)]


def _causes(at: Sequence[int] | None, count: int) -> list[str]:
    return [""] * count if at is None else [f" by {event}" for event in at]


def _only_on_one_side(expected: Iterable[str], got: Iterable[str]) -> Iterator[str]:
    wanted, found = Counter(expected), Counter(got)
    for what, rows in (("missing", wanted - found), ("not expected", found - wanted)):
        if rows:
            yield f"{what}: {', '.join(sorted(rows.elements()))}"

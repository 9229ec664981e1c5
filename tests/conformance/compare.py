"""What FlinkCEP emits and what Cepheid does, compared: as multisets or, where the pattern has groups, as sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.conformance.case import Match
from tests.conformance.shown import matches_text


def difference(expected: Iterable[Match], got: Iterable[Match], *, as_sets: bool) -> str | None:
    """The matches that only one side has, as text; None if there are none.

    FlinkCEP emits some matches of groups several times, Cepheid does not; hence the sets.
    """
    wanted, found = Counter(expected), Counter(got)
    if as_sets:
        wanted, found = Counter(wanted.keys()), Counter(found.keys())
    sides = (("missing", wanted - found), ("not expected", found - wanted))
    lines = [f"{what}: {matches_text(matches.elements())}" for what, matches in sides if matches]
    return "\n".join(lines) if lines else None

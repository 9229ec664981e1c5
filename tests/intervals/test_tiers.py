"""Matches of an interval pattern as events of further patterns."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from tests.intervals.events import NAMES, Row, interval_pattern, matcher, table

from cepheid import IntervalMatcher, Matcher, Pattern, detect
from cepheid.intervals import interval_pattern as parsed

QUIET = "EVENT PAL(A a, (!D d gap), B b) RELATE a before b WITHIN 12 seconds"
APART = Pattern.begin("one").followed_by("other").where("match_start > one.match_end").within("30 seconds")
OVERLAPPING = parsed("EVENT PAL(pattern one overlap pattern other) WITHIN 30 seconds").taxonomy("pattern")
SPANS = {"time": ("match_start", "match_end")}
BY_END = {"time": "match_end", "sequence": "match_id"}


def test_a_second_tier_of_conservative_matches() -> None:
    """Conservative matches are emitted in the order of their ends, so a second tier processes them without any delay
    and none is late. It finds what it would find in the matches of all events.
    """
    random = Random(0)
    rows: list[Row] = []
    for i in range(600):
        start = i // 2 + random.randrange(4)
        rows.append((random.choice("AABBD"), start, start + random.randrange(4), f"e{i}", random.choice("uv")))
    rows.sort(key=lambda row: row[2] + random.randrange(4))
    first = matcher(QUIET, key="user")
    calls = [first.process(table(rows[i : i + 7])) for i in range(0, len(rows), 7)]
    calls.append(first.finish())
    assert first.counts.late == 0
    matches = detect(table(rows), interval_pattern(QUIET), key="user", **NAMES)
    assert first.counts.matches == len(matches) > 100
    matches = matches.append_column("pattern", pa.array(["pattern"] * len(matches)))

    schema, options = calls[0].schema, {"key": "user", "columns": "match_id"}
    stages = Matcher(APART, schema, lateness="0 seconds", **BY_END, **options)
    intervals = IntervalMatcher(OVERLAPPING, schema, lateness="0 seconds", late_by="end", **SPANS, **options)
    for tier, pattern, times in ((stages, APART, BY_END), (intervals, OVERLAPPING, SPANS)):
        found = pa.concat_tables([*map(tier.process, calls), tier.finish()]).column("match_id").to_pylist()
        assert sorted(found) == sorted(detect(matches, pattern, **times, **options).column("match_id").to_pylist())
        assert len(found) > 100
        assert tier.counts.late == 0

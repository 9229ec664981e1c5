"""The reasons of near misses, found for whole columns, equal those that are found for one match after the other."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hosts.near_patterns import events_of, patterns, rows
from tests.hosts.reasons_one_by_one import OneByOne, Reason
from tests.searching import cases

from cepheid import Pattern
from cepheid.events.batch import python_values
from cepheid.hosts.in_process.near import run_changes
from cepheid.hosts.in_process.probed import probed
from cepheid.lang.duration import format_duration
from cepheid.matchers.stages.near import NearMatcher
from cepheid.output.stages.near.find import reasons_for
from cepheid.output.stages.near.texts import lengths_text, times_text
from cepheid.output.values import plain_text
from cepheid.plan.stages.near.changes import changes_of
from cepheid.requests.request_of import request_of


@settings(cases(10, long=2_000), suppress_health_check=[HealthCheck.filter_too_much])  # many shapes are no patterns
@given(patterns(), rows)
def test_reasons_are_those_of_the_definition(pattern: Pattern, given_rows: Any) -> None:
    """The same matches have reasons, with the same parts."""
    ready, matcher = run_changes(events_of([given_rows]), request_of(pattern, key="k", time="at"), changes_of(pattern))
    assert isinstance(matcher, NearMatcher)
    known = matcher.known(*probed(ready, pa.array(matcher.looked_at), matcher.probes(ready.engine)), ready.source)
    for near in matcher.found:
        found = reasons_for(near, known)
        off_by = [None if math.isnan(distance) else distance for distance in found.off_by.tolist()]
        columns = (found.reached.tolist(), found.at.tolist(), found.text.to_pylist(), off_by)
        each = zip(*columns, found.far.tolist(), found.is_null.tolist(), strict=True)
        expected = OneByOne(known).of_each(near)
        assert [*zip(found.match.tolist(), (Reason(*one) for one in each), strict=True)] == expected, near.change


@given(st.lists(st.integers(0, 10**14) | st.integers(0, 3).map(lambda days: days * 86_400_000_000)))
def test_lengths_are_written_as_single_ones_are(lengths: list[int]) -> None:
    """Many lengths at once are written as `format_duration` writes each."""
    expected = [format_duration(timedelta(microseconds=length)) for length in lengths]
    assert lengths_text(np.array(lengths, np.int64)).to_pylist() == expected


SECONDS = st.integers(-62_135_596_800, 253_402_300_799) | st.integers(0, 2_000_000_000)
"""Since 1970; the first are of the years from 1 to 9999."""


@given(st.lists(SECONDS), st.sampled_from([1, 1_000, 1_000_000]), st.sampled_from([None, "UTC", "America/New_York"]))
def test_times_are_written_as_single_ones_are(seconds: list[int], factor: int, zone: str | None) -> None:
    """Many times at once are written as `plain_text` writes each, in their own zone."""
    unit = {1: "s", 1_000: "ms", 1_000_000: "us"}[factor]
    values = [second * factor + factor // 3 * (second % 2) for second in seconds]
    column = pa.chunked_array([pa.array(values, pa.int64()).cast(pa.timestamp(unit, zone))])
    assert times_text(column).to_pylist() == [plain_text(time) for time in python_values(column)]

"""Detects one pattern of each kind, so that the kernels are compiled and on disk before the tests begin. Otherwise the
test processes and their Spark workers would wait for each other.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from cepheid import Matcher, OccurrencePattern, Pattern, detect
from cepheid.intervals import interval_pattern

AT = [datetime(2026, 1, 1, minute=minute, tzinfo=UTC) for minute in range(4)]
EVENTS = pa.table({"at": AT, "until": AT, "type": ["A", "B", "A", "B"], "x": [1, 2, 1, 2]})
ONE_BY_ONE = Pattern.begin("a").where("x = 1").next("b").where("x > a.x")
IN_SETS = Pattern.begin("a").where("x = 1").one_or_more().followed_by("b").where("x = 2")


def main() -> None:
    for pattern in (ONE_BY_ONE, IN_SETS):
        detect(EVENTS, pattern, key=(), time="at")
        Matcher(pattern, EVENTS.schema, key=(), time="at", lateness="1 second", consistency="realtime").process(EVENTS)
    detect(EVENTS, OccurrencePattern.of("A; B").taxonomy("type"), key=(), time="at")
    detect(EVENTS, interval_pattern("EVENT PAL(A before B)").taxonomy("type"), key=(), time=("at", "until"))


if __name__ == "__main__":
    main()

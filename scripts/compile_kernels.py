"""Detects one pattern of each kind, so that the kernels are compiled and on disk before the tests begin. Otherwise the
test processes and their Spark workers would wait for each other.

`compile_kernels.py stages` compiles those of patterns of stages, `compile_kernels.py others` those of occurrences,
intervals and sessions. The two share little code and take about as long as each other, so they run at the same time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pyarrow as pa

from cepheid import Matcher, OccurrencePattern, Pattern, detect, why
from cepheid.intervals import interval_pattern
from cepheid.kernel.stages.observed.compiled import CountingKernel
from cepheid.kernel.stages.warm_up import KINDS, warm_up
from cepheid.knowledge import EventMapping, Knowledge

AT = [datetime(2026, 1, 1, minute=minute, tzinfo=UTC) for minute in range(4)]
EVENTS = pa.table({"at": AT, "until": AT, "type": ["A", "B", "A", "B"], "x": [1, 2, 1, 2]})
ONE_BY_ONE = Pattern.begin("a").where("x = 1").next("b").where("x > a.x")
IN_SETS = Pattern.begin("a").where("x = 1").one_or_more().followed_by("b").where("x = 2")
ONTOLOGY = """
@prefix : <http://shop.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:A rdfs:subClassOf :C . :B rdfs:subClassOf :C . :x a owl:DatatypeProperty .
"""


def in_sessions() -> OccurrencePattern:
    """A pattern whose filter is asked in sessions, not as SQL: events may be one individual."""
    knowledge = Knowledge.read(ONTOLOGY, prefixes={"": "http://shop.example/"})
    mapping = EventMapping("http://shop.example/{x}", type="type", properties={"x": "x"}, linked=True)
    return OccurrencePattern.of("?a: A; ?b: B [C(?b) ^ x(?a, ?x)]", knowledge=knowledge, mapping=mapping)


def stages() -> None:
    for kind in (*KINDS.values(), CountingKernel):  # `why` uses the last one only if there are many events
        # Before any detection, which would have another process compile and would not wait for it.
        warm_up(kind)  # type: ignore[arg-type]  # classes can be hashed
    for pattern in (ONE_BY_ONE, IN_SETS):
        detect(EVENTS, pattern, key=(), time="at")
        Matcher(pattern, EVENTS.schema, key=(), time="at", lateness="1 second", consistency="realtime").process(EVENTS)
    why(EVENTS, IN_SETS, key=(), time="at")


def others() -> None:
    detect(EVENTS, OccurrencePattern.of("A; B").taxonomy("type"), key=(), time="at")
    detect(EVENTS, in_sessions(), key=(), time="at")
    for key in ("x", ()):
        detect(EVENTS, interval_pattern("EVENT PAL(A before B)").taxonomy("type"), key=key, time=("at", "until"))


PARTS: Mapping[str, Callable[[], None]] = {"stages": stages, "others": others}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PARTS:
        sys.exit(f"usage: compile_kernels.py {'|'.join(PARTS)}")
    PARTS[sys.argv[1]]()

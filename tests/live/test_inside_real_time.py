"""The inner state of a matcher with a consistency: no key is lost after work on some keys, and no row is stored too
long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from tests.live.events import ALL, PAIR, SCHEMA, events

from cepheid import Matcher, OccurrencePattern, Pattern, SchemaError
from cepheid.compile.occurrences.compiled import CompiledOccurrences, compile_occurrences
from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.events.batch import Batch
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.hosts.in_process.prepare import TimedEvents, lifted
from cepheid.kernel.arrays import NO_TIME, Visits
from cepheid.lang.consistency import Consistency
from cepheid.matchers.conservative import in_order
from cepheid.matchers.event_queue import times_of
from cepheid.matchers.key_numbers import KeyNumbers
from cepheid.matchers.occurrences.detector import OccurrenceDetector
from cepheid.matchers.protocols import Detector
from cepheid.matchers.real_time.matcher import RealTimeMatcher
from cepheid.matchers.stages.detector import Detector as StageDetector
from cepheid.plan.lifted import OutputName
from cepheid.requests.request_of import request_of

Outputs: TypeAlias = Sequence[OutputName]

KERNELS: list[tuple[Pattern, Outputs]] = [
    (PAIR, ALL),
    (PAIR, ("matches",)),
    (Pattern.begin("a").where(lambda event: event["x"] == "a", name="is_a").followed_by("b").where("x = 'b'"), ALL),
]
"""One pattern for each kernel: the compiled one, the one of sets, and the one that calls Python functions."""


def occurrences(text: str) -> OccurrencePattern:
    return OccurrencePattern.of(text).taxonomy("x").policy("unrestricted")


def compiled(pattern: Pattern | OccurrencePattern, outputs: Outputs) -> CompiledPattern | CompiledOccurrences:
    request = request_of(pattern, key="k", time="at", outputs=outputs)
    if isinstance(pattern, Pattern):
        return compile_plan(plans_in_process(SCHEMA, request, DuckDbEngine()).only)
    return compile_occurrences(plans_in_process(SCHEMA, request, DuckDbEngine()))


def detector_of(pattern: Pattern | OccurrencePattern, outputs: Outputs) -> Detector:
    made = compiled(pattern, outputs)
    return OccurrenceDetector(made) if isinstance(made, CompiledOccurrences) else StageDetector(made)


def batch(of: Detector, table: pa.Table) -> Batch:
    return lifted(TimedEvents(table, (table["at"],)), of.plan, DuckDbEngine())


@pytest.mark.parametrize(("pattern", "outputs"), KERNELS)
def test_a_refused_listing(pattern: Pattern, outputs: Outputs) -> None:
    """Listing is refused if the key has the name of a column of the listing. The matcher then continues as before."""
    schema = pa.schema([field.with_name({"k": "deadline"}.get(field.name, field.name)) for field in SCHEMA])
    live = Matcher(
        pattern, schema, key="deadline", time="at", outputs=outputs, lateness="9 seconds", consistency="realtime"
    )
    live.process(events((1, "q", 0, "-"), (2, "p", 0, "a")).rename_columns(schema.names))
    with pytest.raises(SchemaError, match="open partial matches have a column 'deadline', and so has the key"):
        live.partial_matches()
    rows = live.process(events((3, "p", 1, "b")).rename_columns(schema.names)).to_pylist()
    assert [(row["kind"], row["deadline"]) for row in rows] == [("insertion", "p")]


@pytest.mark.parametrize(("pattern", "outputs"), [*KERNELS, (occurrences("a; b"), ("matches",))])
def test_a_failure_while_few_keys_are_loaded(pattern: Pattern | OccurrencePattern, outputs: Outputs) -> None:
    """After an error in the block, whatever its cause, the kernel has all keys again."""
    detector = detector_of(pattern, outputs)
    added = batch(detector, events((1, "p", 0, "a"), (2, "q", 0, "a")))
    ordered, keys, _ = in_order(added, KeyNumbers().numbers(added))
    detector.step(ordered, Visits(keys, np.array([1, 2]), times_of(ordered), np.zeros(2, np.bool_)))
    assert detector.kernel.open_partial_matches(NO_TIME) == 2
    with pytest.raises(KeyboardInterrupt), detector.only(keys[1:]):
        raise KeyboardInterrupt
    assert detector.kernel.open_keys.tolist() == [0, 1]
    assert detector.kernel.open_partial_matches(NO_TIME) == 2


def test_emitted_rows_are_not_stored_twice() -> None:
    """After rows are forgotten, an emitted row is no longer stored as pending."""
    detector = detector_of(occurrences("a - b"), ("matches",))
    live = RealTimeMatcher(detector, Consistency.REALTIME)
    live.process(batch(detector, events(*((second, "p", second, "a") for second in range(100)))))
    live.forget()
    assert (live.revisions.emitted.size, live.revisions.pending.size) == (100, 0)

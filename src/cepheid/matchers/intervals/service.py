"""The ServiceMatcher of interval patterns: the clock is the latest end of an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from cepheid.compile.intervals.compiled import compile_intervals
from cepheid.errors import PatternError, SchemaError
from cepheid.events.batch import Batch
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.document.knowledge import knowledge_digest, mapping_document
from cepheid.lang.document.values import parameters_document, taxonomy_document
from cepheid.lang.duration import microseconds
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.printer import interval_text
from cepheid.matchers.counts import IntervalCounts, IntervalMatcherCounts
from cepheid.matchers.intervals.live import WHY_UNLISTED
from cepheid.matchers.intervals.matcher import LiveIntervalMatcher
from cepheid.matchers.shared.events import Share
from cepheid.matchers.shared.order_of_ends import columns_as_alone, in_order_of_content
from cepheid.matchers.snapshot import fitting, restored, stored_number
from cepheid.output.common import net_matches
from cepheid.plan.intervals.growth import interval_growth, never_certain
from cepheid.plan.intervals.plan import IntervalPlan
from cepheid.plan.lifted import Measure


class IntervalServiceMatcher:
    """A ServiceMatcher."""

    def __init__(
        self,
        plan: IntervalPlan,
        lateness: timedelta | None,
        late_by: End,
        *,
        buffer: int | None = None,
        frequencies: Mapping[str, float] | None,
        columns: pa.Schema,
        zone: str,
        parts: Mapping[str, str],
        share: Share | None = None,
    ) -> None:
        """Without a lateness or a buffer, nothing is certain and nothing is forgotten before the input ends. With a
        `buffer` so many of the latest events are not late. `parts` are further values on which it depends whether a
        snapshot fits. With a `share`, it holds events together with the matchers of other patterns.

        Raises:
            PatternError: a lateness is given, but no match would be certain before the end.
        """
        self._plan, self._late_by, self._ends = plan, late_by, lateness is None and buffer is None
        self._buffer = buffer
        self._check_certain(plan.pattern)
        delay = None if lateness is None else microseconds(lateness)
        self._compiled = compile_intervals(plan, delay=delay, lateness=late_by, frequencies=frequencies, buffer=buffer)
        self._share = share
        self._matcher = self._new_matcher()
        self._matches = 0
        counted = {} if buffer is None else {"buffer": buffer}
        self._made_for = made_for(plan, columns, delay, late_by, {"time_zone": zone, **counted, **parts})

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is retained forever. The consistency does not change it: `switch` refuses one that would."""
        return () if self._ends else interval_growth(self._plan.pattern, self._late_by)

    @property
    def plan_now(self) -> IntervalPlan:
        """The plan with the current consistency, which `switch` or a restored snapshot may have changed."""
        return replace(self._plan, pattern=self._plan.pattern.emitting(self._matcher.kernel.consistency))

    def process(self, batch: Batch) -> pa.Table:
        given = batch if self._share is None else columns_as_alone(batch)
        return self._counted(self._matcher.process(in_order_of_content(given)))

    def advance_time(self, time: int) -> pa.Table:
        if self._buffer is not None:
            raise SchemaError("time: lateness is a number of events, so only events make something certain")
        return self._counted(self._matcher.advance_time(time))

    def finish(self) -> pa.Table:
        return self._counted(self._matcher.finish())

    def switch(self, consistency: Consistency) -> pa.Table:
        self._check_certain(self._plan.pattern.emitting(consistency))
        return self._counted(self._matcher.switch(consistency))

    def partial_matches(self, most: int) -> pa.Table:  # noqa: ARG002
        raise PatternError(WHY_UNLISTED)

    def counts(self, read: Mapping[str, int]) -> IntervalMatcherCounts:
        return IntervalMatcherCounts(
            **read,
            matches=self._matches,
            dropped_matches=self._matcher.dropped,
            late=self._matcher.late,
            open_matches=self._matcher.open_matches,
            held=self._matcher.held,
        )

    def snapshot(self, read: Mapping[str, int]) -> bytes:
        counts = IntervalCounts(**read, matches=self._matches)
        return self._matcher.snapshot(self._made_for, asdict(counts))

    def restore(self, data: bytes, columns: pa.Schema) -> dict[str, int]:
        matcher, kept = restored(self._new_matcher(), data, self._made_for, columns)
        with fitting():  # older snapshots also have the counts of other kinds of pattern, and not all of these
            known = {"unclosed": 0, "null_ids": 0, "repeated": 0, **kept}
            counts = {field.name: stored_number(known[field.name]) for field in fields(IntervalCounts)}
        self._matcher, self._matches = matcher, counts["matches"]
        return counts

    def _new_matcher(self) -> LiveIntervalMatcher:
        return LiveIntervalMatcher(self._compiled, share=self._share)

    def _check_certain(self, pattern: IntervalPattern) -> None:
        if not self._ends and (problems := never_certain(pattern, self._late_by, "late_by='start'")):
            raise PatternError(problems)

    def _counted(self, rows: pa.Table) -> pa.Table:
        self._matches += net_matches(rows)
        return rows


def made_for(
    plan: IntervalPlan, columns: pa.Schema, delay: int | None, late_by: End, parts: Mapping[str, Any]
) -> dict[str, Any]:
    """What a snapshot of a matcher has to agree with, in JSON values; `parts` are further ones."""
    return {
        "name": plan.pattern.name,
        **pattern_parts(plan),
        "columns": {name: str(type_) for name, type_ in zip(columns.names, columns.types, strict=True)},
        "delay": delay,
        "lateness": late_by.value,
        **parts,
    }


def pattern_parts(plan: IntervalPlan) -> dict[str, Any]:
    """The parts of the pattern and its columns on which stored state depends, in JSON values; not the consistency,
    which may change while a matcher runs.
    """
    pattern, schema = plan.pattern.emitting(Consistency.CONSERVATIVE), plan.schema
    return {
        "interval pattern": interval_text(pattern).splitlines(),
        "taxonomy": None if pattern.types is None else taxonomy_document(pattern.types),
        "key": list(schema.key),
        "times": list(schema.times),
        **({"sequence": list(schema.order_by)} if schema.sequence else {}),
        "chosen": list(plan.columns),
        **({} if plan.measures is None else _measured(plan, plan.measures)),
        **parameters_document(pattern.parameters),
        **({} if pattern.knowledge is None else {"knowledge": knowledge_digest(pattern.knowledge)}),
        **({} if pattern.mapping is None else {"mapping": mapping_document(pattern.mapping)}),
    }


def _measured(plan: IntervalPlan, measures: Sequence[Measure]) -> dict[str, Any]:
    """The measures in words, and the columns in the state that they are computed from."""
    return {"measures": {one.name: one.text for one in measures}, "lifted": [value.sql for value in plan.values]}

"""The matcher for services without Spark: tables of events in, rows out, its state in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from cepheid.compile.compiled import compile_plan
from cepheid.errors import SchemaError
from cepheid.events import microseconds
from cepheid.hosts.duckdb_engine import DuckDbEngine
from cepheid.hosts.in_process import plan_in_process, with_measures
from cepheid.hosts.intake import in_order_of_arrival, lifted, timed, usable, used_columns
from cepheid.hosts.request import EventCounts, Request, instant_of
from cepheid.hosts.tables import without_views
from cepheid.kernel.layout import NO_TIME
from cepheid.lang.document import pattern_form
from cepheid.lang.duration import microseconds as length_of
from cepheid.live_matcher import LiveMatcher


@dataclass(frozen=True)
class MatcherCounts(EventCounts):
    """What a matcher has seen so far, and what is open."""

    late: int = 0
    """Events that came after time had passed theirs; they are not matched."""
    waiting: int = 0
    """Events that wait for time to pass them."""
    open_partial_matches: int = 0


class TableMatcher:
    """Finds one pattern in tables of events that go on coming."""

    def __init__(self, request: Request, columns: pa.Schema, lateness: timedelta | None) -> None:
        self._asked = request
        numbered, self._request = in_order_of_arrival(columns.empty_table(), request)
        columns = numbered.schema
        self._zone = request.time_zone or "UTC"
        self._engine = DuckDbEngine(time_zone=self._zone)
        self._plan = plan_in_process(columns, self._request, self._engine)
        self._columns = columns
        in_order = timedelta(0) if request.time is None else lateness
        self._lateness = None if in_order is None else length_of(in_order)
        self._matcher = LiveMatcher(compile_plan(self._plan))
        self._latest = NO_TIME
        self._counts = EventCounts()

    def process(self, events: pa.Table) -> pa.Table:
        """The rows that these events make certain."""
        events, _ = in_order_of_arrival(events, self._asked, self._counts.events)
        events = self._checked(events)
        placed, counts = usable(timed(events, self._request), self._plan, self._request, None)
        self._counts = EventCounts(
            null_keys=self._counts.null_keys + counts.null_keys,
            null_times=self._counts.null_times + counts.null_times,
            events=self._counts.events + counts.events,
        )
        rows = [self._matcher.process(lifted(placed, self._plan, self._engine))]
        if len(placed) and self._lateness is not None:
            latest = int(max(placed.time.cast(pa.int64()).to_numpy()))
            self._latest = max(self._latest, latest)
            if self._lateness:
                rows.append(self._matcher.advance_time(self._latest - self._lateness - 1))
            else:
                rows.append(self._matcher.settle(self._latest))
        return self._output(rows)

    def advance_time(self, time: datetime) -> pa.Table:
        """The rows that are certain once time has passed to `time`: no event up to it comes any more."""
        return self._output([self._matcher.advance_time(microseconds(instant_of(time, self._zone)))])

    def finish(self) -> pa.Table:
        """The rows that are certain as no events come any more."""
        return self._output([self._matcher.finish()])

    def snapshot(self) -> bytes:
        """All that is open and waits."""
        return self._matcher.snapshot(self._made_for(), {"latest": self._latest, "counts": asdict(self._counts)})

    def restore(self, data: bytes) -> None:
        """Continues where the matcher was that wrote the snapshot."""
        kept = self._matcher.restore(data, self._made_for())
        self._latest, self._counts = kept["latest"], EventCounts(**kept["counts"])

    def _made_for(self) -> dict[str, object]:
        """What a snapshot must be of, to fit this matcher: in JSON values."""
        request, plan = self._request, self._plan
        return {
            "pattern": pattern_form(request.pattern),
            "key": list(request.key),
            "time": request.time,
            "time_zone": self._zone,
            "sequence": list(request.sequence),
            "columns": {name: str(self._columns.field(name).type) for name in used_columns(plan)},
            "chosen": list(plan.columns),
            "measures": dict(request.measures or {}),
            "outputs": list(request.outputs or ()),
            "partial_matches": "in sets" if self._matcher.in_sets else "one by one",
        }

    @property
    def counts(self) -> MatcherCounts:
        found = asdict(self._matcher.detector.found)
        told = {name: count for name, count in asdict(self._counts).items() if name not in found and name != "ties"}
        return MatcherCounts(
            **told,
            **found,
            ties=self._matcher.ties,
            late=self._matcher.late,
            waiting=sum(map(len, self._matcher.waiting)),
            open_partial_matches=self._matcher.open_partial_matches,
        )

    def _checked(self, events: pa.Table) -> pa.Table:
        """The columns that are used, in the types that the matcher was made for."""
        columns = used_columns(self._plan)
        faults = []
        for name in columns:
            expected = self._columns.field(name).type
            found = [field.type for field in events.schema if field.name == name]
            if not found:
                faults.append(f"events have no column {name!r}, which the matcher was made with")
            elif found[0] != expected and not pa.types.is_null(found[0]):
                faults.append(f"column {name!r} is of type {found[0]}; the matcher was made for {expected}")
        if faults:
            raise SchemaError("\n".join(faults))
        expected_schema = pa.schema([self._columns.field(name).with_nullable(nullable=True) for name in columns])
        return without_views(events.select(columns).cast(expected_schema))

    def _output(self, rows: Sequence[pa.Table]) -> pa.Table:
        table = pa.concat_tables(rows)
        return table if self._plan.measures is None else with_measures(table, self._plan.measures, self._engine)

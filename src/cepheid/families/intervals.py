"""The family of interval patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cepheid.errors import PatternError
from cepheid.families.family import RETRACTIONS, Explanation, Family, LateBy, ServiceOptions
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.duration import microseconds
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.matchers.counts import IntervalCounts
from cepheid.plan.reserved import BY_END

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.compile.intervals.compiled import CompiledIntervalPlans
    from cepheid.errors import Problem
    from cepheid.events.batch import Schema
    from cepheid.events.openings import FinalEvents
    from cepheid.lang.document.marked_text import Value
    from cepheid.matchers.intervals.event_rows import EventRows
    from cepheid.matchers.intervals.open_runner import OpenIntervalsRunner
    from cepheid.matchers.intervals.runner import IntervalsRunner
    from cepheid.matchers.intervals.sharing import AnyRunner, SharingRunner
    from cepheid.matchers.parts import GatheredPart
    from cepheid.matchers.protocols import FiniteMatcher, ServiceMatcher
    from cepheid.plan.division import TimeSlices
    from cepheid.plan.engine import SqlEngine
    from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans
    from cepheid.plan.lifted import OutputName
    from cepheid.plan.needed import NeededBit
    from cepheid.plan.pattern_request import PatternRequest, PlanOptions


_NO_VALUES = "intervals are divided by key and by time only"
_NO_COPIES = "intervals have no partial matches: each event is joined with those stored before"


class Intervals(Family):
    """Interval patterns."""

    kind = "intervals"
    pattern = IntervalPattern
    noun = "an IntervalPattern"
    has_ends = True
    in_order = False
    sorted_by = BY_END
    outputs: tuple[OutputName, ...] = ("matches", "late")
    always_in_one_table = True
    shares_events = True
    last_columns = ("event",)
    lacks: Mapping[str, str] = MappingProxyType(
        {
            "max_partial_matches": "matches are joined anew with each event",
        }
    )
    counts = IntervalCounts

    def check(self, pattern: IntervalPattern, measures: Mapping[str, str] | None) -> list[Problem]:
        from cepheid.plan.intervals.build import check_intervals

        return check_intervals(pattern, measures)

    def types(self, pattern: IntervalPattern) -> Iterable[str]:
        from cepheid.plan.intervals.build import types_of_variables

        return types_of_variables(pattern).values()

    def build(
        self,
        patterns: Sequence[PatternRequest[IntervalPattern]],
        schema: Schema,
        engine: SqlEngine,
        options: PlanOptions,
    ) -> IntervalPlans:
        from cepheid.plan.intervals.build import build_interval_plans

        return build_interval_plans(patterns, schema, engine, options)

    def document(self, pattern: IntervalPattern) -> dict[str, Value]:
        from cepheid.lang.intervals.document import write_document

        return write_document(pattern)

    def warnings(self, plan: IntervalPlan) -> Iterable[str]:
        from cepheid.plan.intervals.odd import interval_oddities

        return interval_oddities(plan)

    def needed_bits(self, plan: IntervalPlan) -> Iterable[NeededBit]:
        from cepheid.plan.needed import NeededBit

        variables = zip(plan.pattern.variables, plan.variable_bits[: plan.positives], strict=False)
        return (NeededBit(f"event {variable!r}", bit) for variable, bit in variables)

    def growth(self, plan: IntervalPlan, late_by: LateBy) -> Iterable[str]:
        from cepheid.plan.intervals.growth import interval_growth

        return interval_growth(plan.pattern, End(late_by))

    def never_certain(self, plan: IntervalPlan, late_by: LateBy) -> list[Problem]:
        from cepheid.plan.intervals.growth import never_certain

        return never_certain(plan.pattern, End(late_by), f"give {plan.schema.time!r} the watermark")

    def never_certain_as_of(self, plan: IntervalPlan) -> list[Problem]:
        from cepheid.plan.intervals.growth import never_certain

        return never_certain(plan.pattern, End.END, None)

    def explain(self, pattern: IntervalPattern, plan: IntervalPlan | None) -> Explanation:
        from cepheid.plan.intervals.explain import explain_interval_pattern, explain_intervals, join_diagram
        from cepheid.plan.intervals.slices import slices_text

        if plan is None:
            return Explanation(f"{explain_interval_pattern(pattern)}\n", None, pattern.picture)
        ways = [
            f"by a value: cannot, because {_NO_VALUES}",
            f"by start: cannot, because {_NO_COPIES}",
            slices_text(plan),
        ]
        text = explain_intervals(plan, ways=ways, warnings=self.remarks(pattern, plan))
        return Explanation(f"{text}\n", join_diagram(plan), pattern.picture)

    def remarks(self, pattern: IntervalPattern, plan: IntervalPlan | None) -> list[str]:
        from cepheid.plan.intervals.growth import interval_warnings
        from cepheid.plan.nameless import nameless

        odd = nameless(pattern) if plan is None else self.warnings(plan)
        return [*(f"{warning}." for warning in odd), *interval_warnings(pattern)]

    def compile(self, plans: IntervalPlans) -> CompiledIntervalPlans:
        from cepheid.compile.intervals.compiled import CompiledIntervalPlans

        return CompiledIntervalPlans(plans)

    def row_schemas(self, plans: IntervalPlans) -> list[pa.Schema]:
        from cepheid.output.intervals.finite import finite_schema

        return [finite_schema(plan, named=plans.named) for plan in plans.each]

    def finite(self, compiled: CompiledIntervalPlans, until: int | None) -> FiniteMatcher:
        from cepheid.matchers.gathered import GatheredMatcher

        return GatheredMatcher(self.parts(compiled), until=until)

    def parts(self, compiled: CompiledIntervalPlans) -> Sequence[GatheredPart]:
        from cepheid.matchers.intervals.finite import parts_of_intervals

        return parts_of_intervals(compiled)

    def sliced(self, compiled: CompiledIntervalPlans, width: int, until: int | None) -> FiniteMatcher:
        from cepheid.matchers.gathered import GatheredMatcher

        return GatheredMatcher(self.parts(compiled), width=width, until=until)

    def time_slices(self, plans: IntervalPlans, *, settled: bool = False) -> TimeSlices | str:
        from cepheid.plan.intervals.slices import slices_of_all
        from cepheid.plan.undivided import Undivided

        found = slices_of_all(plans, settled=settled)
        return found.text if isinstance(found, Undivided) else found

    def certain_from(self, plan: IntervalPlan, matches: pa.Table) -> pa.ChunkedArray:
        from cepheid.matchers.intervals.finite import certain_from

        return certain_from(plan, matches)

    def start_window(self, plan: IntervalPlan) -> str:  # noqa: ARG002
        return _NO_COPIES

    def ties_matter(self, plans: IntervalPlans) -> bool:  # noqa: ARG002
        return False

    def runner(self, plan: IntervalPlan, late_by: LateBy) -> IntervalsRunner:
        from cepheid.matchers.intervals.runner import IntervalsRunner

        return IntervalsRunner(plan, End(late_by))

    def sharing(
        self, plans: IntervalPlans, runners: Sequence[AnyRunner], columns: pa.Schema, *, only_relevant: bool
    ) -> SharingRunner:
        from cepheid.matchers.intervals.sharing import SharingRunner

        return SharingRunner(plans, tuple(runners), columns, only_relevant)

    def opened_by_rows(
        self, runner: IntervalsRunner, *, drops: bool, open_for: timedelta | None
    ) -> OpenIntervalsRunner:
        from cepheid.matchers.intervals.open_runner import OpenIntervalsRunner
        from cepheid.plan.intervals.ends import not_of_ends, unknown_negations

        if problems := [*unknown_negations(runner.plan), *not_of_ends(runner.plan)]:
            raise PatternError(problems)
        longest = None if open_for is None else microseconds(open_for)
        return OpenIntervalsRunner(runner.plan, runner.late_by, drops, longest)

    def final_events(
        self, rows: pa.Table, times: Sequence[pa.ChunkedArray], schema: Schema, changes: str, *, drops: bool
    ) -> FinalEvents:
        from cepheid.matchers.intervals.final_events import final_events

        return final_events(rows, times, schema, changes, drops=drops)

    def live_outputs(self, plan: IntervalPlan) -> tuple[str, ...]:
        """Where rows open events, a match may get a further row, or be retracted, before all its events have ended."""
        by_rows, consistency = plan.schema.event_id is not None, plan.pattern.consistency
        changes = consistency is Consistency.REALTIME or (by_rows and consistency is Consistency.EARLIEST)
        return (*plan.live_outputs, *[RETRACTIONS] * changes)

    def compatibility(self, runner: IntervalsRunner | OpenIntervalsRunner, zone: str) -> dict[str, Any]:
        """The values leave out the consistency, which may change."""
        from cepheid.families.compatibility import rows_per_of
        from cepheid.matchers.intervals.service import pattern_parts

        plan = runner.plan
        used = dict.fromkeys([*plan.schema.key, *plan.schema.times, *plan.columns])
        return {
            "pattern.name": plan.pattern.name,
            **pattern_parts(plan),
            **({} if plan.schema.event_id is None else {"event_id": plan.schema.event_id}),
            "lateness": plan.times[runner.late_by],
            "time_zone": zone,
            "columns": {name: str(plan.schema.columns.field(name).type) for name in used},
            "values": [str(value.type) for value in plan.values],
            "outputs": list(plan.live_outputs),
            **rows_per_of(plan),
        }

    def rows_reader(self, schema: Schema, options: ServiceOptions, is_held: Callable[[bytes], bool]) -> EventRows:
        from cepheid.matchers.intervals.event_rows import EventRows

        return EventRows(
            schema,
            options.lateness,
            End(options.late_by),
            open_for=options.open_for,
            changes=options.changes,
            drops=options.drops,
            is_held=is_held,
        )

    def service(self, plan: IntervalPlan, options: ServiceOptions, zone: str) -> ServiceMatcher:
        from cepheid.families.compatibility import resolution_of
        from cepheid.matchers.intervals.event_rows import EventRows
        from cepheid.matchers.intervals.open_service import OpenIntervalServiceMatcher
        from cepheid.matchers.intervals.service import IntervalServiceMatcher

        if plan.schema.event_id is not None:
            assert isinstance(options.rows, EventRows), "the rows are read by what rows_reader gives"
            return OpenIntervalServiceMatcher(
                plan,
                options.lateness,
                End(options.late_by),
                rows=options.rows,
                open_for=options.open_for,
                changes=options.changes,
                frequencies=options.frequencies,
                columns=options.columns,
                zone=zone,
                parts=resolution_of(options),
                share=options.share,
            )
        return IntervalServiceMatcher(
            plan,
            options.lateness,
            End(options.late_by),
            buffer=options.buffer,
            frequencies=options.frequencies,
            columns=options.columns,
            zone=zone,
            parts=resolution_of(options),
            share=options.share,
        )

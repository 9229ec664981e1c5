"""The family of patterns of occurrences (the event algebra)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cepheid.families.family import Explanation, Family, LateBy, ServiceOptions
from cepheid.lang.occurrences.expression import Occurrence
from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
from cepheid.matchers.counts import EventCounts

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.compile.occurrences.compiled import CompiledOccurrences
    from cepheid.errors import Problem
    from cepheid.events.batch import Schema
    from cepheid.lang.document.marked_text import Value
    from cepheid.matchers.occurrences.parts import OccurrencesPart
    from cepheid.matchers.occurrences.runner import OccurrencesRunner
    from cepheid.matchers.protocols import FiniteMatcher, ServiceMatcher
    from cepheid.plan.engine import SqlEngine
    from cepheid.plan.lifted import OutputName
    from cepheid.plan.needed import NeededBit
    from cepheid.plan.occurrences.plan import OccurrencePlan
    from cepheid.plan.occurrences.plans import OccurrencePlans
    from cepheid.plan.pattern_request import PatternRequest, PlanOptions
    from cepheid.plan.tiers import Side

_NO_OTHER = "occurrences are divided by key and by value only"
"""Why there are no copies by start and no time slices."""


class Occurrences(Family):
    """Patterns of occurrences."""

    kind = "occurrences"
    pattern = OccurrencePattern
    noun = "an OccurrencePattern"
    outputs: tuple[OutputName, ...] = ("matches", "inconsistent", "late")
    last_columns = ("events", "event")
    counts = EventCounts

    def check(self, pattern: OccurrencePattern, measures: Mapping[str, str] | None) -> list[Problem]:
        from cepheid.plan.occurrences.build import check_occurrences

        return check_occurrences(pattern, measures)

    def advice(self, given: object) -> str | None:
        if isinstance(given, Occurrence):
            return f"an expression is no pattern yet: make one of it with OccurrencePattern.of(…), got {given!r}"
        return None

    def types(self, pattern: OccurrencePattern) -> Iterable[str]:
        from cepheid.plan.occurrences.types import event_types

        return event_types(pattern)

    def endless(self, pattern: OccurrencePattern) -> OccurrencePattern:
        """The pattern with the policy RECENT if it has none, as all occurrences in unbounded input are too many."""
        return pattern if pattern.chosen is not None else pattern.policy(Policy.RECENT)

    def build(
        self,
        patterns: Sequence[PatternRequest[OccurrencePattern]],
        schema: Schema,
        engine: SqlEngine,
        options: PlanOptions,
    ) -> OccurrencePlans:
        from cepheid.plan.occurrences.build import build_occurrence_plans

        return build_occurrence_plans(patterns, schema, engine, options)

    def document(self, pattern: OccurrencePattern) -> dict[str, Value]:
        from cepheid.lang.occurrences.document import write_document

        return write_document(pattern)

    def warnings(self, plan: OccurrencePlan) -> Iterable[str]:
        return plan.warnings

    def needed_bits(self, plan: OccurrencePlan) -> Iterable[NeededBit]:
        from cepheid.plan.occurrences.needed import needed_bits

        return needed_bits(plan)

    def growth(self, plan: OccurrencePlan, late_by: LateBy) -> Iterable[str]:  # noqa: ARG002
        from cepheid.plan.occurrences.growth import occurrence_growth

        return occurrence_growth(plan)

    def explain(self, pattern: OccurrencePattern, plan: OccurrencePlan | None) -> Explanation:
        from cepheid.plan.occurrences import explain
        from cepheid.plan.occurrences.sub_keys import sub_keys_text
        from cepheid.plan.undivided import division_lines

        if plan is None:
            text = explain.explain_occurrences(pattern)
            return Explanation(text, explain.occurrence_drawing(pattern), pattern.picture)
        ways = [sub_keys_text(plan), *(f"by {way}: cannot, because {_NO_OTHER}" for way in ("start", "time"))]
        lines = [explain.explain_occurrence_plan(plan).rstrip("\n"), *division_lines(ways)]
        return Explanation("\n".join([*lines, ""]), explain.occurrence_mermaid(plan), pattern.picture)

    def remarks(self, pattern: OccurrencePattern, plan: OccurrencePlan | None) -> list[str]:
        from cepheid.plan.nameless import nameless
        from cepheid.plan.occurrences.types import misread_types

        return [*nameless(pattern), *misread_types(pattern)] if plan is None else list(plan.warnings)

    def compile(self, plans: OccurrencePlans) -> CompiledOccurrences:
        from cepheid.compile.occurrences.compiled import compile_occurrences

        return compile_occurrences(plans)

    def row_schemas(self, plans: OccurrencePlans) -> list[pa.Schema]:
        from cepheid.output.occurrences import row_schema

        return [row_schema(plan) for plan in plans.each]

    def finite(self, compiled: CompiledOccurrences, until: int | None) -> FiniteMatcher:
        from cepheid.events.order import ordering_of
        from cepheid.matchers.finite import SortedMatcher
        from cepheid.matchers.occurrences.detector import OccurrenceDetector

        ordering = ordering_of(compiled.plan.schema)
        return SortedMatcher(OccurrenceDetector(compiled), until=until, ordering=ordering)

    def parts(self, compiled: CompiledOccurrences) -> Sequence[OccurrencesPart]:
        from cepheid.matchers.occurrences.parts import OccurrencesPart

        return [OccurrencesPart(compiled)]

    def time_slices(self, plans: OccurrencePlans, *, settled: bool = False) -> str:  # noqa: ARG002
        return _NO_OTHER

    def sub_keys(self, plans: OccurrencePlans) -> Sequence[Side]:
        from cepheid.plan.occurrences.sub_keys import sub_keys_of_occurrences
        from cepheid.plan.undivided import Undivided

        sides = sub_keys_of_occurrences(plans)
        return () if isinstance(sides, Undivided) else sides

    def start_window(self, plan: OccurrencePlan) -> str:  # noqa: ARG002
        return _NO_OTHER

    def ties_matter(self, plans: OccurrencePlans) -> bool:
        """Only for contexts: they consume simultaneous events one after the other. Other policies ignore the order."""
        return any(plan.policy.is_context for plan in plans.each)

    def runner(self, plan: OccurrencePlan, late_by: LateBy) -> OccurrencesRunner:  # noqa: ARG002
        from cepheid.matchers.occurrences.runner import OccurrencesRunner

        return OccurrencesRunner(plan)

    def compatibility(self, runner: OccurrencesRunner, zone: str) -> dict[str, Any]:
        from cepheid.compile.occurrences.digest import layout_digest
        from cepheid.families.compatibility import compatibility_of

        plan = runner.plan
        return compatibility_of(plan, self.document(plan.pattern), layout_digest(runner.compiled), zone)

    def service(self, plan: OccurrencePlan, options: ServiceOptions, zone: str) -> ServiceMatcher:
        from cepheid.families.compatibility import resolution_of
        from cepheid.matchers.occurrences.detector import OccurrenceDetector
        from cepheid.matchers.service import FollowingMatcher

        runner = self.runner(plan, options.late_by)
        return FollowingMatcher(
            lambda: OccurrenceDetector(runner.compiled),
            self.compatibility(runner, zone) | resolution_of(options),
            lateness=options.lateness,
            consistency=options.consistency,
            warnings=list(self.growth(plan, options.late_by)),
        )

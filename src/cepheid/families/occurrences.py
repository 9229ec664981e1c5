"""The family of patterns of occurrences (the event algebra)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import Problem
from cepheid.families.family import Explanation, Family, LateBy, ServiceOptions
from cepheid.lang.occurrences.document import write_document
from cepheid.lang.occurrences.expression import Occurrence
from cepheid.lang.occurrences.pattern import OccurrencePattern, Policy
from cepheid.matchers.counts import EventCounts
from cepheid.plan.lifted import OutputName
from cepheid.plan.occurrences.build import build_occurrence_plans, check_occurrences
from cepheid.plan.occurrences.growth import occurrence_growth
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.plans import OccurrencePlans
from cepheid.plan.occurrences.sub_keys import sub_keys_of_occurrences, sub_keys_text
from cepheid.plan.occurrences.types import event_types, misread_types
from cepheid.plan.tiers import Side
from cepheid.plan.undivided import Undivided, division_lines

if TYPE_CHECKING:
    from cepheid.compile.occurrences.compiled import CompiledOccurrences
    from cepheid.matchers.occurrences.parts import OccurrencesPart
    from cepheid.matchers.occurrences.runner import OccurrencesRunner
    from cepheid.matchers.protocols import FiniteMatcher, ServiceMatcher

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
    build = staticmethod(build_occurrence_plans)
    document = staticmethod(write_document)

    def check(self, pattern: OccurrencePattern, measures: Mapping[str, str] | None) -> list[Problem]:
        return check_occurrences(pattern, measures)

    def advice(self, given: object) -> str | None:
        if isinstance(given, Occurrence):
            return f"an expression is no pattern yet: make one of it with OccurrencePattern.of(…), got {given!r}"
        return None

    def types(self, pattern: OccurrencePattern) -> Iterable[str]:
        return event_types(pattern)

    def endless(self, pattern: OccurrencePattern) -> OccurrencePattern:
        """The pattern with the policy RECENT if it has none, as all occurrences in unbounded input are too many."""
        return pattern if pattern.chosen is not None else pattern.policy(Policy.RECENT)

    def warnings(self, plan: OccurrencePlan) -> Iterable[str]:
        return plan.warnings

    def growth(self, plan: OccurrencePlan, late_by: LateBy) -> Iterable[str]:  # noqa: ARG002
        return occurrence_growth(plan)

    def explain(self, pattern: OccurrencePattern, plan: OccurrencePlan | None) -> Explanation:
        from cepheid.plan.occurrences import explain

        if plan is None:
            text = explain.explain_occurrences(pattern)
            return Explanation(text, explain.occurrence_drawing(pattern), pattern.picture)
        ways = [sub_keys_text(plan), *(f"by {way}: cannot, because {_NO_OTHER}" for way in ("start", "time"))]
        lines = [explain.explain_occurrence_plan(plan).rstrip("\n"), *division_lines(ways)]
        return Explanation("\n".join([*lines, ""]), explain.occurrence_mermaid(plan), pattern.picture)

    def remarks(self, pattern: OccurrencePattern, plan: OccurrencePlan | None) -> list[str]:
        return list(misread_types(pattern) if plan is None else plan.warnings)

    def compile(self, plans: OccurrencePlans) -> CompiledOccurrences:
        from cepheid.compile.occurrences.compiled import compile_occurrences

        return compile_occurrences(plans)

    def row_schemas(self, plans: OccurrencePlans) -> list[pa.Schema]:
        from cepheid.output.occurrences import row_schema

        return [row_schema(plan) for plan in plans.each]

    def finite(self, compiled: CompiledOccurrences, until: int | None) -> FiniteMatcher:
        from cepheid.matchers.finite import SortedMatcher
        from cepheid.matchers.occurrences.detector import OccurrenceDetector

        return SortedMatcher(OccurrenceDetector(compiled), until=until)

    def parts(self, compiled: CompiledOccurrences) -> Sequence[OccurrencesPart]:
        from cepheid.matchers.occurrences.parts import OccurrencesPart

        return [OccurrencesPart(compiled)]

    def time_slices(self, plans: OccurrencePlans, *, settled: bool = False) -> str:  # noqa: ARG002
        return _NO_OTHER

    def sub_keys(self, plans: OccurrencePlans) -> Sequence[Side]:
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
        return compatibility_of(plan, write_document(plan.pattern), layout_digest(runner.compiled), zone)

    def service(self, plan: OccurrencePlan, options: ServiceOptions, zone: str) -> ServiceMatcher:
        from cepheid.matchers.occurrences.detector import OccurrenceDetector
        from cepheid.matchers.service import FollowingMatcher

        runner = self.runner(plan, options.late_by)
        return FollowingMatcher(
            lambda: OccurrenceDetector(runner.compiled),
            self.compatibility(runner, zone),
            lateness=options.lateness,
            consistency=options.consistency,
            warnings=list(occurrence_growth(plan)),
        )

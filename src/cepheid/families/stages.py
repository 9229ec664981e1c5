"""The family of patterns of stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cepheid.families.family import Explanation, Family, LateBy, ServiceOptions
from cepheid.lang.stages.pattern import Pattern
from cepheid.matchers.counts import EventCounts

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.compile.stages.compiled_plans import CompiledPlans
    from cepheid.compile.step_in_words import StepInWords
    from cepheid.errors import Problem
    from cepheid.events.batch import Schema
    from cepheid.lang.document.marked_text import Value
    from cepheid.matchers.protocols import FiniteMatcher, ServiceMatcher
    from cepheid.matchers.shipped_events import ShippedEvents
    from cepheid.matchers.stages.near import NearMatcher
    from cepheid.matchers.stages.observed import ObservedMatcher, TracedMatcher
    from cepheid.matchers.stages.parts import StagesPart
    from cepheid.matchers.stages.runner import StagesRunner
    from cepheid.output.funnel import Funnel
    from cepheid.plan.division import TimeSlices
    from cepheid.plan.engine import SqlEngine
    from cepheid.plan.lifted import OutputName
    from cepheid.plan.needed import NeededBit
    from cepheid.plan.pattern_request import PatternRequest, PlanOptions
    from cepheid.plan.stages.near.changes import Change
    from cepheid.plan.stages.plan import Plan
    from cepheid.plan.stages.plans import Plans
    from cepheid.plan.tiers import Side, Tier


class Stages(Family):
    """Patterns of stages."""

    kind = "stages"
    pattern = Pattern
    noun = "a Pattern"
    outputs: tuple[OutputName, ...] = ("matches", "timeouts", "no_match", "late")
    last_columns = ("event",)
    named_in_one_table = True
    drains = True
    lists_open = True
    explains_misses = True
    counts = EventCounts

    def check(self, pattern: Pattern, measures: Mapping[str, str] | None) -> list[Problem]:
        from cepheid.plan.stages.build import check_pattern

        return check_pattern(pattern, measures)

    def types(self, pattern: Pattern) -> Iterable[str]:
        from cepheid.plan.stages.names import asked_types

        return (name for _, name in asked_types(pattern))

    def build(
        self, patterns: Sequence[PatternRequest[Pattern]], schema: Schema, engine: SqlEngine, options: PlanOptions
    ) -> Plans:
        from cepheid.plan.stages.plans import build_plans

        return build_plans(patterns, schema, engine, options)

    def document(self, pattern: Pattern) -> dict[str, Value]:
        from cepheid.lang.stages.document import pattern_form

        return pattern_form(pattern)

    def warnings(self, plan: Plan) -> Iterable[str]:
        from cepheid.plan.stages.names import asked_types
        from cepheid.plan.taxonomy import taxonomy_warnings

        return (*plan.odd, *taxonomy_warnings(plan.pattern.types, asked_types(plan.pattern)))

    def needed_bits(self, plan: Plan) -> Iterable[NeededBit]:
        from cepheid.plan.stages.needed import needed_bits

        return needed_bits(plan)

    def ends_with_absence(self, pattern: Pattern) -> bool:
        return pattern.leaves[-1].contiguity.negated

    def needs_two_events(self, pattern: Pattern) -> bool:
        needed = [one for one in pattern.stages if not one.contiguity.negated and not one.quantifier.optional]
        return len(needed) > 1

    def steps_in_words(self, pattern: Pattern) -> Iterable[StepInWords]:
        from cepheid.compile.stages.steps_in_words import steps_in_words
        from cepheid.plan.stages.parameters import as_given

        return steps_in_words(as_given(pattern))

    def correlations(self, plan: Plan) -> Mapping[str, str]:
        from cepheid.plan.stages.correlations import correlations

        return correlations(plan)

    def growth(self, plan: Plan, late_by: LateBy) -> Iterable[str]:  # noqa: ARG002
        from cepheid.plan.stages.growth import growth_warnings

        return growth_warnings(plan.pattern)

    def names_of_functions(self, pattern: Pattern) -> list[str]:
        return [function.name for _, function in pattern.functions]

    def explain(self, pattern: Pattern, plan: Plan | None) -> Explanation:
        from cepheid.compile.stages.compiled import compile_plan, relevance_text
        from cepheid.compile.stages.diagram import automaton_mermaid, automaton_text
        from cepheid.compile.stages.representation import lookups_text, representation_text
        from cepheid.plan.stages.division.explain import division_text
        from cepheid.plan.stages.explain import explain_pattern, explain_plan
        from cepheid.plan.stages.parameters import as_given
        from cepheid.plan.stages.tiers import IN_BLOCKS, tiers_text

        pattern = as_given(pattern)
        if plan is None:
            text = explain_pattern(pattern)
        else:
            compiled = compile_plan(plan)
            text = f"{explain_plan(plan)}{relevance_text(compiled)}\n{representation_text(compiled)}\n"
            text += lookups_text(compiled)
            text += f"{IN_BLOCKS if plan.schema.key else tiers_text(plan)}\n"
            text += division_text(plan)
        return Explanation(f"{text}\n{automaton_text(pattern)}\n", automaton_mermaid(pattern), pattern.picture)

    def remarks(self, pattern: Pattern, plan: Plan | None) -> list[str]:
        from cepheid.plan.stages.explain import pattern_warnings
        from cepheid.plan.stages.parameters import as_given

        return list(pattern_warnings(as_given(pattern), plan))

    def compile(self, plans: Plans) -> CompiledPlans:
        from cepheid.compile.stages.compiled_plans import compile_plans

        return compile_plans(plans)

    def row_schemas(self, plans: Plans) -> list[pa.Schema]:
        from cepheid.output.stages.rows import row_schema

        return [row_schema(plan) for plan in plans.each]

    def finite(self, compiled: CompiledPlans, until: int | None) -> FiniteMatcher:
        from cepheid.matchers.stages.finite import SortedMatchers

        return SortedMatchers(compiled, until=until)

    def uncompiled(self, compiled: CompiledPlans) -> Sequence[str]:
        from cepheid.kernel.stages.warm_up import is_compiled
        from cepheid.matchers.stages.detector import kernel_kind

        kinds = {kind for each in compiled.each if (kind := kernel_kind(each)) is not None}
        return sorted(kind.__name__ for kind in kinds if not is_compiled(kind))

    def compile_kernel(self, name: str) -> None:
        from cepheid.kernel import siphash
        from cepheid.kernel.stages.warm_up import KINDS, warm_up

        siphash.warm_up()  # first, so that no one waits for it once the kernel is compiled
        warm_up(KINDS[name])  # type: ignore[arg-type]  # classes can be hashed

    def plain(self, compiled: CompiledPlans, until: int | None) -> FiniteMatcher:
        from cepheid.matchers.stages.detector import plain_kernel
        from cepheid.matchers.stages.finite import SortedMatchers

        return SortedMatchers(compiled, until=until, kernel_of=plain_kernel)

    def observed(self, compiled: CompiledPlans, until: int | None, events: int | None = None) -> ObservedMatcher:
        from cepheid.matchers.stages.observed import ObservedMatcher

        return ObservedMatcher(compiled, until=until, events=events)

    def empty_funnel(self, pattern: Pattern, read: Mapping[str, int]) -> Funnel:
        from cepheid.kernel.stages.observed.tally import Tally
        from cepheid.output.stages.funnel import funnel_of

        return funnel_of(pattern, Tally(), kept_out=0, relevant=0, read=read)

    def traced(self, compiled: CompiledPlans, until: int | None) -> TracedMatcher:
        from cepheid.matchers.stages.observed import TracedMatcher

        return TracedMatcher(compiled, until=until)

    def changes(self, pattern: Pattern) -> Sequence[Change]:
        from cepheid.plan.stages.near.changes import changes_of

        return changes_of(pattern)

    def untried_changes(self, pattern: Pattern) -> Mapping[str, str]:
        from cepheid.plan.stages.near.changes import untried_of

        return untried_of(pattern)

    def near_patterns(self, pattern: Pattern, changes: Sequence[Change], *, complete: bool) -> list[Pattern]:
        from cepheid.matchers.stages.near import near_patterns

        return near_patterns(pattern, changes, complete=complete)

    def near(self, compiled: CompiledPlans, changes: Sequence[Change], until: int | None) -> NearMatcher:
        from cepheid.matchers.stages.near import NearMatcher

        return NearMatcher(compiled, changes, until)

    def parts(self, compiled: CompiledPlans) -> Sequence[StagesPart]:
        from cepheid.matchers.stages.parts import parts_of_stages

        return parts_of_stages(compiled)

    def sliced(self, compiled: CompiledPlans, width: int, until: int | None) -> FiniteMatcher:
        from cepheid.matchers.sliced import SlicedMatcher

        return SlicedMatcher(self.parts(compiled), width=width, until=until)

    def time_slices(self, plans: Plans, *, settled: bool = False) -> TimeSlices | str:
        from cepheid.plan.stages.division.slices import slices_of_all
        from cepheid.plan.undivided import Undivided

        found = slices_of_all(plans, settled=settled)
        return found.text if isinstance(found, Undivided) else found

    def tiers(self, plans: Plans) -> Sequence[Tier]:
        from cepheid.plan.stages.tiers import tiers_of_all

        found = tiers_of_all(plans)
        return () if isinstance(found, str) else found

    def sub_keys(self, plans: Plans) -> Sequence[Side]:
        from cepheid.plan.stages.division.sub_keys import sub_keys_of_all
        from cepheid.plan.undivided import Undivided

        sides = sub_keys_of_all(plans)
        return () if isinstance(sides, Undivided) else sides

    def start_window(self, plan: Plan) -> int | str:
        from cepheid.plan.stages.division.starts import starts_of
        from cepheid.plan.undivided import Undivided

        found = starts_of(plan)
        return found.text if isinstance(found, Undivided) else found.window

    def tier_schema(self, plans: Plans, number: int, shipped: ShippedEvents) -> pa.Schema:
        from cepheid.matchers.stages.tiers import tier_schema
        from cepheid.plan.stages.tier_plans import TierPlan

        return tier_schema(TierPlan(plans.only, self.tiers(plans)[number]), shipped)

    def tier_matcher(self, plans: Plans, number: int, shipped: ShippedEvents, until: int | None) -> FiniteMatcher:
        from cepheid.matchers.stages.tiers import TierMatcher
        from cepheid.plan.stages.tier_plans import TierPlan

        return TierMatcher(TierPlan(plans.only, self.tiers(plans)[number]), shipped, until=until)

    def ties_matter(self, plans: Plans) -> bool:  # noqa: ARG002
        return True

    def runner(self, plan: Plan, late_by: LateBy) -> StagesRunner:  # noqa: ARG002
        from cepheid.matchers.stages.runner import StagesRunner

        return StagesRunner(plan)

    def marking_starts(self, runner: StagesRunner) -> tuple[StagesRunner, int]:
        return replace(runner, marks_starts=True), runner.compiled.may_start

    def compatibility(self, runner: StagesRunner, zone: str) -> dict[str, Any]:
        from cepheid.compile.stages.digest import layout_digest
        from cepheid.compile.stages.representation import choose_representation
        from cepheid.families.compatibility import compatibility_of
        from cepheid.lang.stages.document import pattern_form

        compiled = runner.compiled
        plan = compiled.plan
        parts = compatibility_of(plan, pattern_form(plan.pattern), layout_digest(compiled), zone)
        return {**parts, "partial_matches": "in sets" if choose_representation(compiled).sets else "one by one"}

    def service(self, plan: Plan, options: ServiceOptions, zone: str) -> ServiceMatcher:
        from cepheid.families.compatibility import resolution_of
        from cepheid.matchers.service import FollowingMatcher
        from cepheid.matchers.stages.detector import Detector

        runner = self.runner(plan, options.late_by)
        made_for = self.compatibility(runner, zone) | resolution_of(options)
        return FollowingMatcher(
            lambda: Detector(runner.compiled), made_for, lateness=options.lateness, consistency=options.consistency
        )

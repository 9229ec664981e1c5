"""Interval pattern + schema → plan. All problems of a pattern are found here, and reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import LimitExceeded, PatternError, Problem, did_you_mean
from cepheid.events.batch import Schema
from cepheid.events.time import has_one_offset
from cepheid.knowledge.question import with_answers
from cepheid.lang.consistency import End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.conditions.asked_types import ask_types, check_boolean, is_typed
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.names import Names
from cepheid.plan.conditions.never import never_true
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import Node, Resolver, Source, tree_of
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.engine import SqlEngine
from cepheid.plan.intervals.check import interval_problems
from cepheid.plan.intervals.conditions import MeasureTexts, Variables, resolved, variables_in
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans, JoinScript
from cepheid.plan.intervals.semantic import SemanticConditions
from cepheid.plan.limits import Limits
from cepheid.plan.measures import (
    ResolvedMeasure,
    build_measures,
    measure_problems,
    resolve_measures,
    running_problems,
)
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.plan_set import plan_parts, plans_or_problems
from cepheid.plan.problems import is_time, names_beside, refusal, schema_faults
from cepheid.plan.reserved import COMMON
from cepheid.plan.taxonomy import subtype_conditions
from cepheid.plan.used_columns import names_in


def build_interval_plan(
    pattern: IntervalPattern,
    schema: Schema,
    engine: SqlEngine,
    *,
    columns: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> IntervalPlan:
    """The plan of one pattern in events of the schema; for the arguments and errors see `build_interval_plans`."""
    return build_interval_plans(
        (PatternRequest(pattern),), schema, engine, PlanOptions(columns=columns, limits=limits or Limits())
    ).only


def build_interval_plans(
    patterns: Sequence[PatternRequest[IntervalPattern]], schema: Schema, engine: SqlEngine, options: PlanOptions
) -> IntervalPlans:
    """The plans of patterns over the same events; for `options.named` see IntervalPlans.

    `options.columns` are the event columns that appear in the output (all, if None).

    Raises:
        SchemaError: key, times or columns are missing or not usable; one message with all such faults.
        PatternError: lists the faults of the schema, if any, then all problems of all patterns.
        LimitExceeded: more than MAX_CONDITIONS conditions on single events.
    """
    faults = [*schema_faults(Schema(schema.columns, schema.key, None, schema.sequence), options), *_time_faults(schema)]
    plans, problems = plans_or_problems(
        patterns,
        lambda one, first_slot: _plan_or_problems(
            one, schema, engine, options, sound=not faults, first_slot=first_slot
        ),
        named=options.named,
    )
    if problems or faults:
        raise refusal(problems, faults)
    return IntervalPlans.of(plans, named=options.named)


def check_intervals(pattern: IntervalPattern, measures: Mapping[str, str] | None = None) -> list[Problem]:
    """The problems that do not depend on the events."""
    problems = [*interval_problems(pattern), *measure_problems(measures or {}, COMMON)]
    semantics = SemanticConditions.of(pattern, None, problems)
    if _has_types(pattern) and pattern.positives:
        _type_texts(semantics, None, problems)
    if not _repeats(pattern):
        _read(semantics, measures or {}, {end: end.value for end in End}, None, problems)
    return problems


def _plan_or_problems(
    asked: PatternRequest[IntervalPattern],
    schema: Schema,
    engine: SqlEngine,
    options: PlanOptions,
    *,
    sound: bool,
    first_slot: int,
) -> IntervalPlan | list[Problem]:
    pattern, measures = asked.pattern, asked.measures
    problems = interval_problems(pattern, schema.key)
    problems += measure_problems(measures or {}, [*COMMON, *names_beside(schema, options)])
    if options.rows_per == "event":
        problems += running_problems(measures or {}, "measures of intervals are those of the whole match")
    if not _has_types(pattern):
        hint = "Say which it is: .taxonomy('kind')."
        problems.append(Problem("no column of the events is known to hold their types", "taxonomy", hint=hint))
    if not pattern.positives or _repeats(pattern) or not _has_types(pattern):
        return problems
    semantics = SemanticConditions.of(pattern, schema.columns, problems)
    times = dict(zip(End, schema.times, strict=True))
    event_types = _types_of_events(semantics, schema, problems)
    parts = _Parts(event_types, *_read(semantics, measures or {}, times, schema.columns, problems))
    nodes = [node for found in parts.conditions for node in found]
    questions = semantics.lifted.questions
    asked_nodes = [*nodes, *parts.types, *(one.node for one in parts.measures)]
    types = ask_types(engine, asked_nodes, with_answers(schema.columns, questions), problems)
    apart = schema.end if schema.event_id is not None and engine.computes_rows_alone else None
    names, one_offset = _names(pattern), has_one_offset(engine.time_zone)
    lifting = Lifting(types, one_offset, names, stage=len(pattern.variables), first_slot=first_slot, apart=apart)
    for node in nodes:
        if not is_typed(node, types):
            continue
        try:
            check_boolean(lifting, node)
        except PatternError as error:
            problems += error.problems
    if problems or not sound:
        return problems
    found = build_measures(lifting, parts.measures, engine, problems)
    if problems:
        return problems
    plan = replace(
        _lifted(pattern, schema, parts, lifting, options),
        measures=None if measures is None else found,
        questions=(*questions,),
        answers=tuple(semantics.lifted.answers),
        odd=tuple(semantics.lifted.texts.warnings if pattern.knowledge is not None else never_true(nodes)),
    )
    if len(plan.bits) > MAX_CONDITIONS:
        message = f"a pattern can have at most {MAX_CONDITIONS} different conditions on single events"
        raise LimitExceeded(f"{message}, this has {len(plan.bits)}. Split it into several")
    return plan


def _has_types(pattern: IntervalPattern) -> bool:
    """Whether it is known which events are of which types."""
    return pattern.types is not None or pattern.knowledge is not None


def _repeats(pattern: IntervalPattern) -> bool:
    return len({v.lower() for v in pattern.variables}) < len(pattern.variables)


def _time_faults(schema: Schema) -> Iterator[str]:
    names = schema.columns.names
    if schema.event_id is not None and schema.event_id not in names:
        yield f"event_id: no column named {schema.event_id!r}. {did_you_mean(schema.event_id, names)}"
    if schema.event_id in schema.times:
        what = "start" if schema.event_id == schema.time else "end"
        yield f"event_id: {schema.event_id!r} is the column of an event's {what}; name the one that identifies events"
    for name in schema.times:
        if name not in names:
            yield f"time: no column named {name!r}. {did_you_mean(name, names)}"
        elif not is_time(type_ := schema.columns.field(name).type):
            allowed = "event time is a TIMESTAMP, TIMESTAMP_NTZ or DATE: cast it"
            yield f"time: {name!r} is of type {sql_name(type_)}; {allowed}"
    found = [schema.columns.field(name).type for name in schema.times if name in names]
    if len({pa.types.is_timestamp(type_) and type_.tz is not None for type_ in found if is_time(type_)}) > 1:
        both = " and ".join(f"{name!r} is {sql_name(type_)}" for name, type_ in zip(schema.times, found, strict=True))
        yield f"time: {both}, so only one has a time zone: give both one, or none"


class _Parts(NamedTuple):
    """The AND-ed parts of all conditions."""

    types: list[Node]
    """For each variable, the condition that an event is of its type."""
    conditions: list[list[Node]]
    """The conditions of the match, then those of each negation."""
    measures: list[ResolvedMeasure]


def _types_of_events(semantics: SemanticConditions, schema: Schema, problems: list[Problem]) -> list[Node]:
    sql = _type_texts(semantics, schema.columns, problems)
    found: list[Problem] = []
    return [
        _type_condition(sql[type_], schema.columns, found)
        for type_ in types_of_variables(semantics.pattern).values()
        if type_ in sql
    ]


def _type_texts(semantics: SemanticConditions, columns: pa.Schema | None, problems: list[Problem]) -> Mapping[str, str]:
    """Type → SQL."""
    pattern = semantics.pattern
    asked = [(f"event {variable!r}", type_) for variable, type_ in types_of_variables(pattern).items()]
    if pattern.knowledge is not None:
        return semantics.lifted.classes(asked)
    return subtype_conditions(pattern.types, asked, columns, problems)


def _read(
    semantics: SemanticConditions,
    measures: Mapping[str, str],
    times: Mapping[End, str],
    columns: pa.Schema | None,
    problems: list[Problem],
) -> tuple[list[list[Node]], list[ResolvedMeasure]]:
    """The conditions of the match and of each negation, and the measures; `columns` None: any name may be a column."""
    pattern = semantics.pattern
    count = len(pattern.positives)
    texts = [(pattern.condition, "where", frozenset(range(count)))]
    texts += [
        (n.condition, f"negation of {n.variable!r}, where", frozenset((*range(count), count + i)))
        for i, n in enumerate(pattern.negations)
    ]
    parameters = Parameters(pattern.parameters)
    conditions: list[list[Node]] = []
    for text, where, allowed in texts:
        variables = Variables(pattern.variables, allowed, times, parameters, semantics)
        conditions.append([] if text is None else resolved(text, where, variables, columns, problems))
    matched = Variables(pattern.variables, frozenset(range(count)), times, parameters, semantics)
    resolved_ = resolve_measures(pattern.variables, measures, columns, MeasureTexts(matched, columns), problems)
    problems += parameters.unused()
    return conditions, resolved_


def _reads(node: Node, column: str | None) -> bool:
    return column is not None and column.lower() in (name.lower() for name in names_in(tree_of(node)))


def _type_condition(sql: str, columns: pa.Schema, problems: list[Problem]) -> Node:
    return Resolver(Source(sql, "type"), columns, (), 0, problems).resolve(parse_expression(sql))


def _names(pattern: IntervalPattern) -> Names:
    """The names of the variables. Conditions are evaluated when each variable has its event."""
    return Names(pattern.variables, (1,) * len(pattern.variables), len(pattern.variables) + 1)


def types_of_variables(pattern: IntervalPattern) -> dict[str, str]:
    """The type of each variable."""
    positives = {part.variable: part.type for part in pattern.positives}
    return positives | {part.variable: part.type for part in pattern.negations}


def _lifted(
    pattern: IntervalPattern, schema: Schema, parts: _Parts, lifting: Lifting, options: PlanOptions
) -> IntervalPlan:
    """The plan. Conditions on single events are in the bits of their variables, with the conditions of the types; but
    those that read `Lifting.apart` are in scripts.
    """
    count = len(pattern.positives)
    alone: list[list[Node]] = [[type_] for type_ in parts.types]
    joint: list[list[Node]] = []
    for owner, nodes in enumerate(parts.conditions, count - 1):  # a negation has its event's number
        joint.append([])
        for node in nodes:
            about = variables_in(node)
            own = about if owner < count else about & {owner}
            if len(about) == 1 and own and not _reads(node, lifting.apart):
                alone[next(iter(own))].append(node)
            else:
                joint[-1].append(node)
    bits = []
    for variable, nodes in enumerate(alone):
        number, lifting.guards[variable] = lifting.add_bit(nodes)
        bits.append(number)
    scripts = [
        tuple(JoinScript(lifting.lower(node, guarded=True), variables_in(node)) for node in nodes) for nodes in joint
    ]
    return IntervalPlan(
        pattern=pattern,
        **plan_parts(schema, lifting, options),
        variable_bits=tuple(bits),
        scripts=scripts[0],
        negated=tuple(scripts[1:]),
        columns=options.chosen(schema),
    )

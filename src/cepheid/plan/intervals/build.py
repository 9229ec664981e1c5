"""Interval pattern + schema → plan. Everything that can be wrong with a pattern is found here, and reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import LimitExceeded, PatternError, Problem, did_you_mean, in_pattern
from cepheid.events.batch import Schema
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.lang.intervals.values import End
from cepheid.lang.sql.parser import parse_expression
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import Node, Resolver, Source
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.engine import SqlEngine
from cepheid.plan.intervals.check import interval_problems
from cepheid.plan.intervals.conditions import Variables, resolved, variables_in
from cepheid.plan.intervals.plan import IntervalPlan, IntervalPlans, IntervalSchema, JoinScript
from cepheid.plan.limits import Limits
from cepheid.plan.stages.build import Shared, ask_types, check_boolean, is_typed, refusal, schema_faults
from cepheid.plan.stages.plan import MAX_CONDITIONS
from cepheid.plan.taxonomy import subtype_conditions


def build_interval_plan(
    pattern: IntervalPattern,
    schema: IntervalSchema,
    engine: SqlEngine,
    *,
    columns: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> IntervalPlan:
    """What a host and a matcher need to find the pattern in events of the schema; as `build_interval_plans`."""
    (plan,) = build_interval_plans((pattern,), schema, engine, columns=columns, limits=limits).each
    return plan


def build_interval_plans(
    patterns: Sequence[IntervalPattern],
    schema: IntervalSchema,
    engine: SqlEngine,
    *,
    named: bool = False,
    columns: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> IntervalPlans:
    """The plans of patterns over the same events; `named` as in IntervalPlans.

    `columns` are the event columns that come along in the output (all, if None).

    Raises:
        SchemaError: key, times or columns are not there or of no use; all such faults in one message.
        PatternError: with all problems of all patterns; before them those of the schema, if it has any.
        LimitExceeded: more than MAX_CONDITIONS conditions on single events.
    """
    shared = Shared(tuple(schema.columns.names if columns is None else columns), None, limits or Limits())
    faults = [*schema_faults(Schema(schema.columns, schema.key, None), shared), *_time_faults(schema)]
    plans, problems = list[IntervalPlan](), list[Problem]()
    for pattern in patterns:
        with in_pattern(pattern.name, named=named):
            built = _plan_or_problems(pattern, schema, engine, shared, sound=not faults)
        if isinstance(built, IntervalPlan):
            plans.append(built)
        else:
            problems += [problem.of_pattern(pattern.name) if named else problem for problem in built]
    if problems or faults:
        raise refusal(problems, faults)
    return IntervalPlans(tuple(plans), named)


def check_intervals(pattern: IntervalPattern) -> list[Problem]:
    """The problems that are there whatever the events are."""
    problems = interval_problems(pattern)
    if pattern.types is not None and pattern.positives:
        _type_texts(pattern, None, problems)
    if not _repeats(pattern):
        _conditions(pattern, {end: end.value for end in End}, None, problems)
    return problems


def _plan_or_problems(
    pattern: IntervalPattern, schema: IntervalSchema, engine: SqlEngine, shared: Shared, *, sound: bool
) -> IntervalPlan | list[Problem]:
    problems = interval_problems(pattern, schema.key)
    if not pattern.positives or _repeats(pattern):
        return problems
    parts = _Parts(
        _types_of_events(pattern, schema, problems), _conditions(pattern, schema.times, schema.columns, problems)
    )
    nodes = [node for found in parts.conditions for node in found]
    types = ask_types(engine, [*nodes, *parts.types], schema.columns, problems)
    lifting = Lifting(types, _stages(pattern), stage=len(pattern.variables))
    for node in nodes:
        if not is_typed(node, types):
            continue
        try:
            check_boolean(lifting, node)
        except PatternError as error:
            problems += error.problems
    if problems or not sound:
        return problems
    plan = _lifted(pattern, schema, parts, lifting, shared)
    if len(plan.bits) > MAX_CONDITIONS:
        message = f"a pattern can have at most {MAX_CONDITIONS} different conditions on single events"
        raise LimitExceeded(f"{message}, this has {len(plan.bits)}. Split it into several")
    return plan


def _repeats(pattern: IntervalPattern) -> bool:
    return len({v.lower() for v in pattern.variables}) < len(pattern.variables)


def _time_faults(schema: IntervalSchema) -> Iterator[str]:
    names = schema.columns.names
    for what, name in (("start", schema.start), ("end", schema.end)):
        if name not in names:
            yield f"{what}: no column named {name!r}. {did_you_mean(name, names)}"
        elif not pa.types.is_timestamp(type_ := schema.columns.field(name).type):
            yield f"{what}: {name!r} is of type {sql_name(type_)}; it is a TIMESTAMP or TIMESTAMP_NTZ: cast it"


class _Parts(NamedTuple):
    """The AND-ed parts of all conditions."""

    types: list[Node]
    """For each variable, that an event is of its type."""
    conditions: list[list[Node]]
    """Of the match, then of each negation."""


def _types_of_events(pattern: IntervalPattern, schema: IntervalSchema, problems: list[Problem]) -> list[Node]:
    sql = _type_texts(pattern, schema.columns, problems)
    found: list[Problem] = []
    return [_type_condition(sql[type_], schema.columns, found) for type_ in _types(pattern).values() if type_ in sql]


def _type_texts(pattern: IntervalPattern, columns: pa.Schema | None, problems: list[Problem]) -> Mapping[str, str]:
    """Type → SQL. Problems of what are stages there are those of events here."""
    found: list[Problem] = []
    texts = subtype_conditions(_stages(pattern), columns, found)
    label, behind = "stage ", ", subtype"
    problems += [
        replace(one, where=f"event {one.where.removeprefix(label).removesuffix(behind)}")
        if one.where and one.where.startswith(label)
        else one
        for one in found
    ]
    return texts


def _conditions(
    pattern: IntervalPattern, times: Mapping[End, str], columns: pa.Schema | None, problems: list[Problem]
) -> list[list[Node]]:
    """Of the match, then of each negation; `columns` None: any name may be one."""
    count = len(pattern.positives)
    texts = [(pattern.condition, "where", frozenset(range(count)))]
    texts += [
        (n.condition, f"negation of {n.variable!r}, where", frozenset((*range(count), count + i)))
        for i, n in enumerate(pattern.negations)
    ]
    parameters = Parameters(pattern.parameters)
    conditions: list[list[Node]] = []
    for text, where, allowed in texts:
        variables = Variables(pattern.variables, allowed, times, parameters)
        conditions.append([] if text is None else resolved(text, where, variables, columns, problems))
    problems += parameters.unused()
    return conditions


def _type_condition(sql: str, columns: pa.Schema, problems: list[Problem]) -> Node:
    return Resolver(Source(sql, "type"), columns, (), 0, problems).resolve(parse_expression(sql))


def _stages(pattern: IntervalPattern) -> Pattern:
    """A pattern whose stages are the variables, each with its type, and one behind them: its condition knows all."""
    stages: Pattern | None = None
    for variable, type_ in _types(pattern).items():
        stages = Pattern.begin(variable) if stages is None else stages.followed_by(variable)
        stages = stages.subtype(type_)
    assert stages is not None, "there is an event"
    return replace(stages.followed_by(" match"), types=pattern.types)


def _types(pattern: IntervalPattern) -> dict[str, str]:
    """Of each variable."""
    positives = {part.variable: part.type for part in pattern.positives}
    return positives | {part.variable: part.type for part in pattern.negations}


def _lifted(
    pattern: IntervalPattern, schema: IntervalSchema, parts: _Parts, lifting: Lifting, shared: Shared
) -> IntervalPlan:
    count = len(pattern.positives)
    alone: list[list[Node]] = [[type_] for type_ in parts.types]
    joint: list[list[Node]] = []
    for owner, nodes in enumerate(parts.conditions, count - 1):  # a negation's own event is that of its number
        joint.append([])
        for node in nodes:
            about = variables_in(node)
            own = about if owner < count else about & {owner}
            if len(about) == 1 and own:
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
        schema=schema,
        bits=tuple(lifted for _, lifted in lifting.bits.values()),
        values=tuple(lifted for _, lifted in lifting.values.values()),
        variable_bits=tuple(bits),
        scripts=scripts[0],
        negated=tuple(scripts[1:]),
        columns=shared.columns,
        limits=shared.limits,
    )

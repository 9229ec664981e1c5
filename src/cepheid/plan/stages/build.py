"""Pattern + schema → plan. Everything that can be wrong with a pattern is found here, and reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import LimitExceeded, PatternError, Problem, SchemaError, did_you_mean
from cepheid.events.batch import Schema
from cepheid.lang.expression import Call, Expression, Name, Span
from cepheid.lang.function import Function
from cepheid.lang.stages.pattern import Condition, Pattern, Stage, Subtype
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import Apply, Called, Node, Resolver, Shape, Source
from cepheid.plan.conditions.types import is_orderable, sql_name
from cepheid.plan.engine import Question, SqlEngine
from cepheid.plan.limits import Limits
from cepheid.plan.measures import ResolvedMeasure, build_measures, measure_problems, resolve_measures
from cepheid.plan.stages.check import RESERVED, pattern_problems, problems_of_outputs, problems_without_time
from cepheid.plan.stages.plan import MAX_CONDITIONS, OutputName, Plan, StageCondition
from cepheid.plan.taxonomy import subtype_conditions


def build_plan(
    pattern: Pattern,
    schema: Schema,
    engine: SqlEngine,
    *,
    columns: Sequence[str] | None = None,
    measures: Mapping[str, str] | None = None,
    outputs: tuple[OutputName, ...] | None = None,
    limits: Limits | None = None,
) -> Plan:
    """What a host and a matcher need to find the pattern in events of the schema.

    `columns` are the event columns that come along in the output's stage columns (all, if None); with `measures` (name
    → SQL over stages) there are these flat columns instead.

    Raises:
        SchemaError: the key, time, sequence or columns are not there or of no use; all such faults in one message.
        PatternError: with all problems of the pattern and the measures; before them those of the schema, if it has any.
        LimitExceeded: more than MAX_CONDITIONS conditions on single events and scripts together.
    """
    shared = Shared(tuple(schema.columns.names if columns is None else columns), outputs, limits or Limits())
    faults = schema_faults(schema, shared)
    built = plan_or_problems(Asked(pattern, measures), schema, engine, shared, sound=not faults)
    if isinstance(built, Plan):
        return built
    raise refusal(built, faults)


class Asked(NamedTuple):
    """A pattern, and what is wanted of its matches."""

    pattern: Pattern
    measures: Mapping[str, str] | None
    """None: the stages."""


class Shared(NamedTuple):
    """What several patterns have in common; as in Plan."""

    columns: tuple[str, ...]
    outputs: tuple[OutputName, ...] | None
    limits: Limits


def plan_or_problems(
    asked: Asked, schema: Schema, engine: SqlEngine, shared: Shared, *, sound: bool, first_slot: int = 0
) -> Plan | list[Problem]:
    """The plan, its slots numbered from `first_slot`; or all problems of the pattern and the measures. Where the schema
    is not `sound`, those that are there without it.
    """
    pattern, measures = asked
    problems = pattern_problems(pattern, schema.columns.names)
    if schema.time is None:
        problems += problems_without_time(pattern)
    problems += problems_of_outputs(pattern, shared.outputs)
    if measures is not None:
        problems += measure_problems(measures, [*RESERVED, *schema.key])
    conditions, resolved = _resolved(pattern, measures or {}, schema.columns, problems)
    nodes = [part.node for parts in conditions for part in parts] + [node for _, node in resolved]
    lifting = Lifting(ask_types(engine, nodes, schema.columns, problems), pattern, first_slot=first_slot)
    if problems or not sound:
        return problems
    stage_conditions = [_stage_condition(lifting, i, parts, problems) for i, parts in enumerate(conditions)]
    built = build_measures(lifting, resolved, engine, problems)
    if problems:
        return problems
    different = len(lifting.bits) + sum(condition.script is not None for condition in stage_conditions)
    if different > MAX_CONDITIONS:
        message = f"a pattern can have at most {MAX_CONDITIONS} different conditions, this has {different}"
        raise LimitExceeded(f"{message}. Split it into several")
    return Plan(
        pattern=pattern,
        schema=schema,
        bits=tuple(lifted for _, lifted in lifting.bits.values()),
        values=tuple(lifted for _, lifted in lifting.values.values()),
        conditions=tuple(stage_conditions),
        measures=built if measures is not None else None,
        columns=shared.columns,
        outputs=shared.outputs,
        limits=shared.limits,
    )


def check_pattern(pattern: Pattern, measures: Mapping[str, str] | None = None) -> list[Problem]:
    """The problems that are there whatever the events are: syntax, references to stages, quantifiers."""
    problems = pattern_problems(pattern, [])
    problems += measure_problems(measures or {}, RESERVED)
    _resolved(pattern, measures or {}, None, problems)
    return problems


def _resolved(
    pattern: Pattern, measures: Mapping[str, str], columns: pa.Schema | None, problems: list[Problem]
) -> tuple[list[list[Part]], list[ResolvedMeasure]]:
    """The plan's conditions and measures with names, types and parameters put in; `columns` None: not known."""
    parameters, types = Parameters(pattern.parameters), subtype_conditions(pattern, columns, problems)
    conditions = [_parts(pattern, written, columns, parameters, problems) for written in _written(pattern, types)]
    resolved = resolve_measures(pattern, measures, columns, parameters, problems)
    problems += parameters.unused()
    return conditions, resolved


def refusal(problems: Sequence[Problem], faults: Sequence[str]) -> PatternError | SchemaError:
    """The error with all that is wrong with patterns and measures, and before that with the schema."""
    if problems:
        return PatternError([*map(Problem, faults), *dict.fromkeys(problems)])
    return SchemaError("\n".join(faults))


# The schema


def schema_faults(schema: Schema, shared: Shared) -> list[str]:
    """What is wrong with the names of the key, the time, the sequence and the columns."""
    names = schema.columns.names
    named = [("key", k) for k in schema.key]
    if schema.time is not None:
        named.append(("time", schema.time))
    named += [("columns", c) for c in shared.columns] + [("sequence", s) for s in schema.sequence]
    faults = [f"{what}: no column named {n!r}. {did_you_mean(n, names)}" for what, n in named if n not in names]
    return faults + [
        f for what, name in named if name in names and (f := _unfit(what, name, schema.columns.field(name).type))
    ]


def _unfit(what: str, name: str, type_: pa.DataType) -> str | None:
    """Why the column's type does not serve for what it is named for."""
    if what == "key" and not _is_hashable(type_):
        return f"key: {name!r} is of type {sql_name(type_)}; a key cannot be or hold a MAP or an ARRAY"
    if what == "time" and not pa.types.is_timestamp(type_):
        return f"time: {name!r} is of type {sql_name(type_)}; event time is a TIMESTAMP or TIMESTAMP_NTZ: cast it"
    if what == "sequence" and not is_orderable(type_):
        return f"sequence: {name!r} is of type {sql_name(type_)}, whose values have no order"
    return None


def _is_hashable(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return all(_is_hashable(field.type) for field in type_)
    return not pa.types.is_nested(type_)


# Conditions


class Part(NamedTuple):
    """A condition, and whether it is ORed with what is before it."""

    alternative: bool
    expression: Expression
    node: Node


@dataclass(frozen=True)
class _Text:
    """SQL text of a condition, or a function's name."""

    sql: str
    where: str
    alternative: bool = False
    function: Function | None = None


@dataclass(frozen=True)
class _Written:
    """The texts of one of the plan's conditions: a stage's, or what ends a loop."""

    texts: tuple[_Text, ...]
    visible: int
    """How many stages, from the first, may be referred to."""


def _written(pattern: Pattern, types: Mapping[str, str]) -> list[_Written]:
    """In the order of `Plan.conditions`; `types` are the SQL texts of subtypes."""
    visible = list(_visible(pattern.stages, 0, None))
    last = {id(part): number for number, leaf in enumerate(pattern.leaves) for part in (leaf,)}
    written = [_Written(tuple(_texts(leaf, types)), visible[number]) for number, leaf in enumerate(pattern.leaves)]
    for loop in pattern.loops_until:
        assert loop.until is not None
        end = last[id(loop.leaves[-1])]
        written.append(_Written((_text(loop.until, f"{loop.label}, until"),), visible[end]))
    return written


def _texts(stage: Stage, types: Mapping[str, str]) -> Iterator[_Text]:
    written = [condition for condition in stage.conditions if not isinstance(condition, Subtype)]
    numbers = iter(range(1, len(written) + 1))
    for condition in stage.conditions:
        if isinstance(condition, Subtype):
            if condition.type in types:  # else its problem is told
                yield _Text(types[condition.type], f"{stage.label}, subtype")
            continue
        call, number = "or_where" if condition.alternative else "where", next(numbers)
        place = f"{call} {number}" if len(written) > 1 else call
        yield _text(condition, f"{stage.label}, {place}")


def _text(condition: Condition, where: str) -> _Text:
    return _Text(condition.text, where, condition.alternative, condition.function)


def _visible(stages: Sequence[Stage], before: int, loop_end: int | None) -> Iterator[int]:
    """For each leaf the stages that it may refer to: those before it, its own and, in a loop, all of the loop."""
    for stage in stages:
        end = before + len(stage.leaves)
        if stage.group:
            loops = stage.quantifier.loops
            yield from _visible(stage.group, before, loop_end or (end if loops else None))
        else:
            yield loop_end or end
        before = end


def _parts(
    pattern: Pattern, written: _Written, columns: pa.Schema | None, parameters: Parameters, problems: list[Problem]
) -> list[Part]:
    """The condition's texts, resolved; those with problems are left out."""
    names = [leaf.name for leaf in pattern.leaves]
    parts = []
    for text in written.texts:
        source = Source(text.sql, text.where)
        if text.function is not None:
            name = Name((text.sql,), ((0, len(text.sql)),))
            parts.append(Part(text.alternative, name, Called(text.function, name.span, source)))
            continue
        found: list[Problem] = []
        expression = parameters.parse(source, problems)
        if expression is None:
            continue
        node = Resolver(source, columns, names, written.visible, found).resolve(expression)
        problems += found
        if not found:
            parts.append(Part(text.alternative, expression, node))
    return parts


def _stage_condition(lifting: Lifting, stage: int, parts: Sequence[Part], problems: list[Problem]) -> StageCondition:
    try:
        for part in parts:
            check_boolean(lifting, part.node)
        whole = _combined(parts)
        return StageCondition(None, None) if whole is None else lifting.condition(whole, stage)
    except PatternError as error:
        problems += error.problems
        return StageCondition(None, None)


def check_boolean(lifting: Lifting, node: Node) -> None:
    type_ = lifting.type_of(node)
    if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
        assert node.source is not None
        message = f"a condition must be BOOLEAN, this is {sql_name(type_)}"
        raise PatternError(Problem(message, node.source.where, node.source.text, resolve.span_of(node)))


def _combined(parts: Sequence[Part]) -> Node | None:
    """Where is AND with what is before, or_where is OR with all that is before."""
    if not parts:
        return None
    first, *others = parts
    tree, node = first.expression, first.node
    nowhere: Span = (0, 0)  # the AND or OR stands in no text
    for part in others:
        tree = Call("or" if part.alternative else "and", (tree, part.expression), nowhere)
        node = Apply(tree, (node, part.node), None)
    return node


# Types


@dataclass(frozen=True)
class _Asked:
    question: Question
    node: Node
    parts: frozenset[Shape]


def ask_types(
    engine: SqlEngine, nodes: Sequence[Node], columns: pa.Schema, problems: list[Problem]
) -> dict[Shape, pa.DataType]:
    """The types of all parts about one event, as the engine has them; of the parts that it refuses the innermost are
    reported.
    """
    asked: dict[Shape, _Asked] = {}
    for node in nodes:
        _collect(node, asked)
    answers = engine.types_of([a.question for a in asked.values()], columns) if asked else []
    types: dict[Shape, pa.DataType] = {}
    refused: set[Shape] = set()
    for (shape, question), answer in zip(asked.items(), answers, strict=True):
        if not isinstance(answer, Problem):
            types[shape] = answer
            continue
        if not question.parts & refused:
            problems.append(_placed(answer, question.node))
        refused.add(shape)
    return types


def is_typed(node: Node, types: Mapping[Shape, pa.DataType]) -> bool:
    """Whether the engine has refused none of its parts."""
    asked: dict[Shape, _Asked] = {}
    _collect(node, asked)
    return asked.keys() <= types.keys()


def _collect(node: Node, asked: dict[Shape, _Asked]) -> frozenset[Shape]:
    """Adds the node's parts, inner ones first; the shapes of the parts in it."""
    if isinstance(node, Apply) and node.call.function == "lambda":
        return frozenset()  # has no type without the function around it
    parts = (
        frozenset().union(*(_collect(sub, asked) for sub in resolve.subnodes(node)))
        if resolve.subnodes(node)
        else frozenset()
    )
    if not isinstance(node, Apply) or node.source is None or not resolve.is_of_one_event(node):
        return parts
    tree = resolve.tree_of(node)
    shape = resolve.shape_of(tree)
    asked.setdefault(shape, _Asked((tree, resolve.sql_of(node)), node, parts))
    return parts | {shape}


def _placed(problem: Problem, node: Node) -> Problem:
    assert node.source is not None
    span = problem.span or resolve.span_of(node)
    return replace(problem, where=node.source.where, text=node.source.text, span=span)

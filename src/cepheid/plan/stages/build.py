"""Pattern + schema → plan. All problems of a pattern are found here, and reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import LimitExceeded, PatternError, Problem
from cepheid.events.batch import Schema
from cepheid.events.time import has_one_offset
from cepheid.knowledge.question import Question, with_answers
from cepheid.lang.expression import Call, Expression, Name, Span
from cepheid.lang.function import Function
from cepheid.lang.stages.conditions import Condition, Subtype
from cepheid.lang.stages.pattern import BeginWithout, Pattern, Stage
from cepheid.plan.calendar import Deadlines
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.conditions.asked_types import ask_types, check_boolean
from cepheid.plan.conditions.choices import with_functions_inside
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.never import Empty, why_never_true
from cepheid.plan.conditions.parameters import Parameters
from cepheid.plan.conditions.resolve import Apply, Called, Node, Resolver, Source
from cepheid.plan.engine import SqlEngine
from cepheid.plan.lifted import OutputName, PlannedCondition, RowsPer
from cepheid.plan.limits import Limits
from cepheid.plan.measures import ResolvedMeasure, build_measures, measure_problems, resolve_measures
from cepheid.plan.nameless import nameless
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.plan_set import plan_parts
from cepheid.plan.problems import names_beside, refusal, schema_faults
from cepheid.plan.reserved import CAUSE, RESERVED, RESERVED_OPEN
from cepheid.plan.semantics.explain import Answer
from cepheid.plan.stages.check import pattern_problems, problems_of_outputs, problems_without_time
from cepheid.plan.stages.names import asked_types, names_of, starts_with_first
from cepheid.plan.stages.parameters import with_values
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.semantic import SemanticConditions
from cepheid.plan.taxonomy import subtype_conditions

PROMOTED = "promoted column"
"""What messages call a column of open partial matches."""


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
    """The plan: what a host and a matcher need to find the pattern in events of the schema.

    `columns` are the event columns in the output's stage columns (all, if None). With `measures` (name → SQL over
    stages), flat columns replace the stage columns.

    Raises:
        SchemaError: the key, time, sequence or columns are missing or not usable; one message with all such faults.
        PatternError: lists the faults of the schema, if any, then all problems of the pattern and the measures.
        LimitExceeded: more than MAX_CONDITIONS conditions on single events and scripts together.
    """
    options = PlanOptions(columns=columns, outputs=outputs, limits=limits or Limits())
    faults = schema_faults(schema, options)
    built = plan_or_problems(PatternRequest(pattern, measures), schema, engine, options, sound=not faults)
    if isinstance(built, Plan):
        return built
    raise refusal(built, faults)


def plan_or_problems(
    asked: PatternRequest[Pattern],
    schema: Schema,
    engine: SqlEngine,
    options: PlanOptions,
    *,
    sound: bool,
    first_slot: int = 0,
) -> Plan | list[Problem]:
    """The plan, with slots numbered from `first_slot`; or all problems of the pattern and the measures. If the schema
    is not `sound`, only the problems that do not depend on it are found.
    """
    given, measures, promoted = asked
    parameters, problems = Parameters(given.parameters), list[Problem]()
    pattern = with_values(given, parameters, problems)
    problems += pattern_problems(pattern, schema.columns.names)
    if schema.time is None:
        problems += problems_without_time(pattern)
    problems += problems_of_outputs(pattern, options.outputs, named=options.named)
    if measures is not None:
        own = [*RESERVED, *[CAUSE] * ("no_match" in (options.outputs or ()))]
        problems += measure_problems(measures, [*own, *names_beside(schema, options)])
    problems += measure_problems(promoted or {}, [*RESERVED_OPEN, *schema.key], noun=PROMOTED)
    wanted = measures or {}, promoted or {}
    found = resolved_texts(pattern, *wanted, schema.columns, problems, parameters=parameters, rows_per=options.rows_per)
    nodes = [part.node for parts in found.conditions for part in parts]
    nodes += [one.node for one in (*found.measures, *found.promoted)]
    types = ask_types(engine, nodes, with_answers(schema.columns, found.questions), problems)
    one_offset = has_one_offset(engine.time_zone)
    lifting = Lifting(types, one_offset, names_of(pattern), first_slot=first_slot, knows_texts=True)
    if problems or not sound:
        return problems
    stage_conditions = [_stage_condition(lifting, i, parts, problems) for i, parts in enumerate(found.conditions)]
    built = build_measures(lifting, found.measures, engine, problems)
    built_of_open = build_measures(lifting, found.promoted, engine, problems)
    if problems:
        return problems
    different = len(lifting.bits) + sum(condition.script is not None for condition in stage_conditions)
    different += pattern.without is not None  # the kernel sets a bit of its own
    if different > MAX_CONDITIONS:
        message = f"a pattern can have at most {MAX_CONDITIONS} different conditions, this has {different}"
        raise LimitExceeded(f"{message}. Split it into several")
    return Plan(
        pattern=pattern,
        **plan_parts(schema, lifting, options, found.questions),
        conditions=tuple(stage_conditions),
        measures=built if measures is not None else None,
        promoted=built_of_open,
        columns=options.chosen(schema),
        deadlines=_deadlines(pattern, options, engine),
        answers=found.answers,
        odd=found.odd,
    )


def _deadlines(pattern: Pattern, options: PlanOptions, engine: SqlEngine) -> Deadlines | None:
    if pattern.calendar is None:
        return None
    return Deadlines.of(pattern.calendar, options.time_zone or engine.time_zone)


def odd_in(pattern: Pattern) -> tuple[str, ...]:
    """What is probably not meant in a pattern without problems, as far as that does not depend on the events."""
    return resolved_texts(pattern, {}, {}, None, [], parameters=Parameters(pattern.parameters)).odd


def check_pattern(pattern: Pattern, measures: Mapping[str, str] | None = None) -> list[Problem]:
    """The problems that do not depend on the events: syntax, references to stages, quantifiers."""
    parameters, problems = Parameters(pattern.parameters), list[Problem]()
    pattern = with_values(pattern, parameters, problems)
    problems += pattern_problems(pattern, [])
    problems += measure_problems(measures or {}, RESERVED)
    resolved_texts(pattern, measures or {}, {}, None, problems, parameters=parameters)
    return problems


class ResolvedTexts(NamedTuple):
    """The texts of a pattern with names, types and parameters filled in."""

    conditions: list[list[ConditionPart]]
    """The parts of the plan's conditions."""
    measures: list[ResolvedMeasure]
    promoted: list[ResolvedMeasure]
    answers: tuple[Answer, ...]
    """The semantic filters, and the SQL in their place."""
    odd: tuple[str, ...]
    """What is probably not meant, for warnings."""
    questions: Sequence[Question]
    """What is asked because it has no SQL."""


def resolved_texts(
    pattern: Pattern,
    measures: Mapping[str, str],
    promoted: Mapping[str, str],
    columns: pa.Schema | None,
    problems: list[Problem],
    *,
    parameters: Parameters,
    rows_per: RowsPer = "match",
) -> ResolvedTexts:
    """`columns` None: the columns are not known."""
    semantics = SemanticConditions.of(pattern, columns, problems)
    if pattern.knowledge is None:
        types = subtype_conditions(pattern.types, asked_types(pattern), columns, problems)
    else:
        types = semantics.lifted.classes(asked_types(pattern))
    texts = [_with_sql(written, semantics) for written in _written(pattern, types)]
    questions = semantics.lifted.questions
    known = None if columns is None else with_answers(columns, questions)
    conditions = [_parts(pattern, written, known, parameters, problems) for written in texts]
    names = [leaf.name for leaf in pattern.leaves]
    resolved = resolve_measures(names, measures, columns, parameters, problems, rows_per=rows_per)
    of_open = resolve_measures(names, promoted, columns, parameters, problems, noun=PROMOTED)
    problems += parameters.unused()
    lifted = semantics.lifted
    odd = (*nameless(pattern), *lifted.texts.warnings, *_never_true(pattern, conditions))
    return ResolvedTexts(conditions, resolved, of_open, tuple(lifted.answers), odd, questions)


def _never_true(pattern: Pattern, conditions: Sequence[Sequence[ConditionPart]]) -> Iterator[str]:
    """A sentence for each stage, loop end and `begin_without` with a condition that is never true."""
    labels = [leaf.label for leaf in pattern.leaves]
    labels += [f"{loop.label}, until" for loop in pattern.loops_until]
    if pattern.without is not None:
        labels.append(pattern.without.label)
    for number, (label, parts) in enumerate(zip(labels, conditions, strict=True)):
        whys = {part: why for part in parts if (why := why_never_true(part.node)) is not None}
        whole = None if whys else combined(parts)
        if whole is not None and number < len(pattern.leaves):
            why = why_never_true(whole, Empty(number, pattern.leaves[number].name))
            whys = {} if why is None else {parts[0]: why}
        # Semantic filters have warnings of their own.
        own = dict.fromkeys(why for part, why in whys.items() if not part.is_semantic)
        yield from (f"{label}: the condition is never true: {why}" for why in own)


# Conditions


class ConditionPart(NamedTuple):
    """A condition, and whether it is ORed with the conditions before it."""

    alternative: bool
    expression: Expression
    node: Node
    is_semantic: bool = False
    """Whether it is SQL in place of a semantic filter."""


@dataclass(frozen=True)
class _Text:
    """SQL text of a condition, or a function's name."""

    sql: str
    where: str
    alternative: bool = False
    function: Function | None = None
    is_semantic: bool = False


@dataclass(frozen=True)
class _Written:
    """The texts of one of the plan's conditions: a stage's, one that ends a loop, or that of `begin_without`."""

    texts: tuple[_Text, ...]
    visible: int
    """The texts may refer to the first `visible` stages."""
    current: str | None
    """The name of the current event in semantic filters; None: it has none."""


def _written(pattern: Pattern, types: Mapping[str, str]) -> list[_Written]:
    """The conditions in the order of `Plan.conditions`; `types` are the SQL texts of subtypes."""
    visible = list(_visible(pattern.stages, 0, None))
    last = {id(part): number for number, leaf in enumerate(pattern.leaves) for part in (leaf,)}
    written = [
        _Written(tuple(_texts(leaf, types)), visible[number], leaf.name) for number, leaf in enumerate(pattern.leaves)
    ]
    for loop in pattern.loops_until:
        assert loop.until is not None
        end = last[id(loop.leaves[-1])]
        texts = (_text(loop.until, f"{loop.label}, until"),)
        written.append(_Written(texts, visible[end], loop.name or None))
    if pattern.without is not None:
        written.append(_written_without(pattern.without, first_is_certain=starts_with_first(pattern)))
    return written


def _written_without(without: BeginWithout, *, first_is_certain: bool) -> _Written:
    texts = () if without.condition is None else (_text(without.condition, f"{without.label}, where"),)
    return _Written(texts, int(first_is_certain), without.name)


def _texts(stage: Stage, types: Mapping[str, str]) -> Iterator[_Text]:
    written = [condition for condition in stage.conditions if not isinstance(condition, Subtype)]
    numbers = iter(range(1, len(written) + 1))
    for condition in stage.conditions:
        if isinstance(condition, Subtype):
            if condition.type in types:  # otherwise its problem is already reported
                yield _Text(types[condition.type], f"{stage.label}, subtype")
            continue
        call, number = "or_where" if condition.alternative else "where", next(numbers)
        place = f"{call} {number}" if len(written) > 1 else call
        yield _text(condition, f"{stage.label}, {place}")


def _text(condition: Condition, where: str) -> _Text:
    return _Text(condition.text, where, condition.alternative, condition.function, condition.is_semantic)


def _with_sql(written: _Written, semantics: SemanticConditions) -> _Written:
    """The same with SQL in place of semantic filters. Those without SQL, whose problems are reported, are left out."""
    texts = []
    for text in written.texts:
        if not text.is_semantic:
            texts.append(text)
        elif (sql := semantics.filter(text.sql, text.where, written.current, written.visible)) is not None:
            texts.append(replace(text, sql=sql))
    return replace(written, texts=tuple(texts))


def _visible(stages: Sequence[Stage], before: int, loop_end: int | None) -> Iterator[int]:
    """For each leaf, how many stages it may refer to: those before it, the leaf itself and, in a loop, all stages of
    the loop.
    """
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
) -> list[ConditionPart]:
    """The condition's texts, resolved; those with problems are left out."""
    names = [leaf.name for leaf in pattern.leaves]
    parts = []
    for text in written.texts:
        source = Source(text.sql, text.where)
        if text.function is not None:
            name = Name((text.sql,), ((0, len(text.sql)),))
            parts.append(ConditionPart(text.alternative, name, Called(text.function, span=name.span, source=source)))
            continue
        found: list[Problem] = []
        expression = parameters.parse(source, problems)
        if expression is None:
            continue
        node = Resolver(source, columns, names, written.visible, found).resolve(expression)
        node = with_functions_inside(node)
        problems += found
        if not found:
            parts.append(ConditionPart(text.alternative, expression, node, text.is_semantic))
    return parts


def _stage_condition(
    lifting: Lifting, stage: int, parts: Sequence[ConditionPart], problems: list[Problem]
) -> PlannedCondition:
    try:
        for part in parts:
            check_boolean(lifting, part.node)
        whole = combined(parts)
        return PlannedCondition(None, None) if whole is None else lifting.condition(whole, stage)
    except PatternError as error:
        problems += error.problems
        return PlannedCondition(None, None)


def combined(parts: Sequence[ConditionPart]) -> Node | None:
    """The whole condition: `where` is ANDed, and `or_where` ORed, with everything before it."""
    if not parts:
        return None
    first, *others = parts
    tree, node = first.expression, first.node
    nowhere: Span = (0, 0)  # the AND or OR is in no text
    for part in others:
        tree = Call("or" if part.alternative else "and", (tree, part.expression), nowhere)
        node = Apply(tree, (node, part.node), None)
    return node

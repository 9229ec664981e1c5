"""Measures: SQL over a match's stages → slots, which the match fills, and a scalar expression over the slots."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Call, Expression, Name, Span
from cepheid.lang.sql.refused import PATTERN_FUNCTIONS
from cepheid.lang.sql.tokens import Kind, tokenize
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.resolve import Apply, Called, Column, Constant, Folded, Node, Pick, Resolver, Source
from cepheid.plan.conditions.script import Aggregate, StageValue
from cepheid.plan.engine import SqlEngine
from cepheid.plan.lifted import Measure, RowsPer, Slot

_OPERATORS = "AND|BETWEEN|DIV|I?LIKE|IN|IS|NOT|OR|REGEXP|RLIKE"
_WORD = re.compile(rf"\s*(FINAL|RUNNING)\s+(?!(?:{_OPERATORS})\b)(?=[\w`])", re.IGNORECASE)
"""The word in front of a measure, before a name or a number. In `final IS NULL` the word is a name itself."""


class ResolvedMeasure(NamedTuple):
    """A measure with its names resolved."""

    name: str
    node: Node
    running: bool
    """Whether it is over the events up to that of the row."""
    marks: Mapping[int, bool]
    """The same for the parts that begin at these places of the text, which have a word of their own."""


def says_running(text: str) -> bool:
    """Whether `RUNNING` comes before the measure or a part of it."""
    word = _WORD.match(text)
    return (word is not None and _is_running(word)) or any(_without_words(text)[1].values())


def _is_running(word: re.Match[str]) -> bool:
    return word[1].upper() == "RUNNING"


def _without_words(text: str) -> tuple[str, dict[int, bool]]:
    """The text with blanks in place of `FINAL` and `RUNNING` within it, and the places of what comes after them: a
    column of a stage, or a function over the events of one; true for `RUNNING`.
    """
    try:
        tokens = tokenize(text)
    except PatternError:  # it is raised where the text is parsed
        return text, {}
    marks, before = dict[int, bool](), ""
    for word, name, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_operand = after.text == "." or (after.text == "(" and name.text.lower() in PATTERN_FUNCTIONS)
        if word.kind is Kind.WORD and word.text in ("FINAL", "RUNNING") and before != "." and is_operand:
            marks[name.start] = word.text == "RUNNING"
            text = text[: word.start] + " " * (word.end - word.start) + text[word.end :]
        before = word.text
    return text, marks


class Texts(Protocol):
    """Something that reads texts: the parameters of a pattern, or an object that also rewrites names."""

    def parse(self, source: Source, problems: list[Problem]) -> Expression | None:
        """The expression of the source's text, None if it has problems."""


def measure_problems(measures: Mapping[str, str], taken: Sequence[str], *, noun: str = "measure") -> list[Problem]:
    """The problems of the measures' names; `taken` are the names of other output columns. Messages call a measure
    `noun`.
    """
    problems, seen = [], set()
    for name in measures:
        if name.lower() in {t.lower() for t in taken}:
            problems.append(
                Problem(f"{noun} {name!r} has the name of another column of the output", hint="Choose another name.")
            )
        if name.lower() in seen:
            problems.append(Problem(f"two {noun}s are named {name!r}, as case does not count"))
        seen.add(name.lower())
    return problems


def running_problems(measures: Mapping[str, str], why: str) -> list[Problem]:
    """The problems of running measures where the measures of all rows of a match are the same, because `why`."""
    return [
        Problem(f"{why}, in each of its rows", f"measure {name!r}", text, hint="Leave out RUNNING.")
        for name, text in measures.items()
        if says_running(text)
    ]


def resolve_measures(
    names: Sequence[str],
    measures: Mapping[str, str],
    columns: pa.Schema | None,
    texts: Texts,
    problems: list[Problem],
    *,
    noun: str = "measure",
    rows_per: RowsPer = "match",
) -> list[ResolvedMeasure]:
    """The measures over these stages or variables, with all names resolved. Measures with problems are left out.

    As in SQL, measures of the rows of a match's events are running, unless `FINAL` comes before them, or before a part
    of them. Where a match has one row, `RUNNING` and `FINAL` say the same.
    """
    resolved = []
    for name, given in measures.items():
        word = _WORD.match(given)
        text, marks = _without_words(given[word.end() :] if word else given)
        running = rows_per == "event" and (word is None or _is_running(word))
        source = Source(text, f"{noun} {name!r}")
        found: list[Problem] = []
        expression = texts.parse(source, problems)
        if expression is None:
            continue
        node = Resolver(source, columns, names, len(names), found, measure=True).resolve(expression)
        problems += found
        if not found:
            resolved.append(ResolvedMeasure(name, node, running, marks if rows_per == "event" else {}))
    return resolved


def build_measures(
    lifting: Lifting, resolved: Sequence[ResolvedMeasure], engine: SqlEngine, problems: list[Problem]
) -> tuple[Measure, ...]:
    """The measures, typed by the engine over their slots."""
    measures = []
    for one in resolved:
        try:
            measures.append(_measure(lifting, one, engine))
        except PatternError as error:
            problems += error.problems
    return tuple(measures)


def _measure(lifting: Lifting, resolved: ResolvedMeasure, engine: SqlEngine) -> Measure:
    name, node = resolved.name, resolved.node
    assert node.source is not None
    edits: list[tuple[Span, str]] = []
    tree = _over_slots(lifting, node, edits, resolved)
    used = {name for _, name in edits}
    slots = {name: slot for name, (slot, _) in lifting.slots.items() if name in used}
    sql = node.source.sql(resolve.span_of(node), edits)
    (type_,) = engine.types_of([(tree, sql)], pa.schema([(slot, value.type) for slot, value in slots.items()]))
    if isinstance(type_, Problem):
        span = type_.span or resolve.span_of(node)
        raise PatternError(replace(type_, where=node.source.where, text=node.source.text, span=span))
    running = frozenset(slot for slot in slots if lifting.slots[slot][1])
    return Measure(name, node.source.text, sql, tree, slots, type_, running)


def _over_slots(lifting: Lifting, node: Node, edits: list[tuple[Span, str]], measure: ResolvedMeasure) -> Expression:
    """The node's tree, with a slot in place of everything that is read from stages."""
    match node:
        case Constant(literal):
            return literal
        case Column(name=name, event=None):
            return name
        case Column() | Pick() | Folded():
            slot = _slot(lifting, node)
            key = lifting.name_slot(slot, running=measure.marks.get(node.span[0], measure.running))
            edits.append((node.span, key))
            return Name((key,), (node.span,))
        case Apply(call, args):
            return Call(call.function, tuple(_over_slots(lifting, arg, edits, measure) for arg in args), call.span)
        case Called():
            raise AssertionError(node)  # a function is in no text


def _slot(lifting: Lifting, node: Column | Pick | Folded) -> Slot:
    type_ = lifting.type_of(node)
    if isinstance(node, Folded):
        column = None if node.argument is None else lifting.add_slot(node.argument, node.fold)
        key = None if node.key is None else lifting.add_slot(node.key)
        return Aggregate(node.fold, node.stage, column, type_, key)
    event = next(iter(resolve.events_of(node)))
    assert event.stage is not None, node
    return StageValue(event.stage, lifting.add_slot(node), type_, event.back, event.from_first)

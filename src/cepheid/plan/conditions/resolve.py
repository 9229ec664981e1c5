"""Names → what they mean: a column of the current event or of a stage's event, or a fold over a stage's events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from cepheid.errors import Problem, closest, did_you_mean
from cepheid.lang.expression import Call, Expression, Literal, Name, Span
from cepheid.lang.function import Function
from cepheid.lang.semantic import FILTER
from cepheid.lang.sql.habits import habit_of_function, habit_of_name
from cepheid.lang.sql.refused import DISTINCT, NO_PARENTHESES, PATTERN_FUNCTIONS, why_refused
from cepheid.plan.conditions.script import Fold

FOLDS = {fold.value: fold for fold in Fold} | {
    "collect_list": Fold.LIST,
    "std": Fold.STDDEV,
    "stddev_samp": Fold.STDDEV,
    "var_samp": Fold.VARIANCE,
}


@dataclass(frozen=True)
class Event:
    """The event that a value is taken from; `stage` None: the current one. The other fields are as in `StageValue`."""

    stage: int | None
    back: int = 0
    from_first: bool = False


CURRENT = Event(None)


@dataclass(eq=False)
class Source:
    """A parsed text, its place in the pattern, and the edits after which it has only event columns."""

    text: str
    where: str
    edits: list[tuple[Span, str]] = field(default_factory=list)
    literals: list[tuple[Span, str]] = field(default_factory=list)
    """The SQL of the parameters in it; these edits are always made."""

    def sql(self, span: Span, edits: Sequence[tuple[Span, str]] | None = None) -> str:
        """The text of `span` after the edits inside it. If edits are nested, the outer one counts."""
        start, end = span
        pieces, position = [], start
        for (from_, to), replacement in sorted([*(self.edits if edits is None else edits), *self.literals]):
            if position <= from_ and to <= end:
                pieces += [self.text[position:from_], replacement]
                position = to
        return "".join([*pieces, self.text[position:end]])

    def with_edit(self, span: Span, sql: str) -> Source:
        """The text with this SQL in place of the span."""
        start, end = span
        edits, literals = (
            [edit for edit in kept if not (start <= edit[0][0] and edit[0][1] <= end)]
            for kept in (self.edits, self.literals)
        )
        return Source(self.text, self.where, [*edits, (span, sql)], literals)


@dataclass(frozen=True)
class Constant:
    literal: Literal
    source: Source


@dataclass(frozen=True, kw_only=True)
class InText:
    """A node that is written in a text."""

    span: Span
    source: Source


@dataclass(frozen=True)
class Column(InText):
    """A column of one event, or (event None) a lambda's parameter. `name` has no stage in it, and is spelled as in the
    schema.
    """

    name: Name
    event: Event | None
    type: pa.DataType


@dataclass(frozen=True)
class Pick(InText):
    """`first(…)` or `last(…)`; the columns in the argument say which event."""

    argument: Node


@dataclass(frozen=True)
class Folded(InText):
    fold: Fold
    stage: int
    argument: Node | None
    key: Node | None = None


@dataclass(frozen=True)
class Apply:
    """An operator or function. `source` None: the AND or OR that joins a stage's conditions, which is in no text."""

    call: Call
    args: tuple[Node, ...]
    source: Source | None


@dataclass(frozen=True)
class Called(InText):
    """A function that is evaluated for the current event. The text of its source is its name."""

    function: Function


Node: TypeAlias = Constant | Column | Pick | Folded | Apply | Called


def span_of(node: Node) -> Span:
    match node:
        case Constant(literal):
            return literal.span
        case Apply(call):
            return call.span
        case _:
            return node.span


def elsewhere(problems: Sequence[Problem], reported: Sequence[Problem]) -> list[Problem]:
    """The problems that do not overlap the place of a problem in `reported`; all are about one text."""
    places = [problem.span for problem in reported if problem.span is not None]
    return [
        problem
        for problem in problems
        if problem.span is None or not any(start < problem.span[1] and problem.span[0] < end for start, end in places)
    ]


def sql_of(node: Node) -> str:
    """The node as SQL over the columns of its event: the user's own text."""
    if isinstance(node, Apply) and node.source is None:
        return f" {node.call.function.upper()} ".join(f"({sql_of(arg)})" for arg in node.args)
    assert node.source is not None
    return node.source.sql(span_of(node))


def written_parts(node: Node) -> list[Node]:
    """The nodes of the texts that the node joins; the node itself, if it does not join texts."""
    if isinstance(node, Apply) and node.source is None:
        return [part for arg in node.args for part in written_parts(arg)]
    return [node]


def text_of(node: Node) -> str:
    """The node as written."""
    assert node.source is not None
    start, end = span_of(node)
    return node.source.text[start:end]


def tree_of(node: Node) -> Expression:
    """The node as a tree over the columns of its event."""
    match node:
        case Constant(literal):
            return literal
        case Column(name):
            return name
        case Pick(argument):
            return tree_of(argument)
        case Apply(call, args):
            return replace(call, args=tuple(tree_of(arg) for arg in args))
        case Folded() | Called():
            raise AssertionError(node)


def expression_of(node: Node) -> Call | Literal:
    """The node as far as the rules of types read it: whether it is a literal, and its place."""
    if isinstance(node, Constant):
        return node.literal
    return node.call if isinstance(node, Apply) else Call("", (), span_of(node))


Shape: TypeAlias = tuple[object, ...]


def shape_of(expression: Expression) -> Shape:
    """A value that is equal for equal expressions, wherever they are in a text."""
    match expression:
        case Literal(value, type_, days=days):
            return ("literal", repr(value), str(type_), days)
        case Name(parts):
            return ("name", *parts)
        case Call(function, args):
            return (function, *(shape_of(arg) for arg in args))


def subnodes(node: Node) -> tuple[Node, ...]:
    match node:
        case Apply(args=args):
            return args
        case Pick(argument):
            return (argument,)
        case Folded(argument=argument, key=key):
            return tuple(part for part in (argument, key) if part is not None)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it; each comes after those below it."""
    for sub in subnodes(node):
        yield from walk(sub)
    yield node


def events_of(node: Node) -> frozenset[Event]:
    """The events that the node's columns are taken from, except in folds."""
    if isinstance(node, Column):
        return frozenset() if node.event is None else frozenset({node.event})
    if isinstance(node, Folded):
        return frozenset()
    return frozenset().union(*(events_of(sub) for sub in subnodes(node)))


def is_of_one_event(node: Node) -> bool:
    """Whether the host's SQL engine can compute the node for each event alone."""
    return len(events_of(node)) <= 1 and not any(isinstance(sub, Folded | Called) for sub in walk(node))


@dataclass
class Resolver:
    """Resolves the names of one text; problems are appended to `problems`, and a name with a problem becomes NULL."""

    source: Source
    columns: pa.Schema | None
    """None: any name may be a column."""
    stages: Sequence[str]
    visible: int
    """The text may refer to the first `visible` stages."""
    problems: list[Problem]
    measure: bool = False
    """Whether the text is a measure, which has no current event."""

    def resolve(self, expression: Expression) -> Node:
        return self._node(expression, CURRENT, frozenset(), None)

    def _problem(self, message: str, span: Span, hint: str | None = None) -> Node:
        self.problems.append(Problem(message, self.source.where, self.source.text, span, hint))
        return Constant(Literal(None, pa.null(), span), self.source)

    def _node(self, expression: Expression, stage_event: Event, bound: frozenset[str], inside: str | None) -> Node:
        """The node of an expression. `stage_event` says which of a stage's events `stage.column` means; `inside` is the
        enclosing pattern function.
        """
        match expression:
            case Literal():
                return Constant(expression, self.source)
            case Name(parts) if parts[0].lower() in bound:
                return Column(expression, None, pa.null(), span=expression.span, source=self.source)
            case Name():
                return self._name(expression, stage_event, inside)
            case Call(function) if function == FILTER:
                hint = "In Python, where(semantic('…')); in a pattern file, where: {semantic: …}; in brackets, [ … ]."
                return self._problem("a semantic filter is no part of an SQL expression", expression.span, hint)
            case Call(function) if function in PATTERN_FUNCTIONS:
                if inside:
                    return self._problem(f"{function}(…) cannot stand inside {inside}(…)", expression.span)
                return self._pattern_function(expression)
            case Call("lambda", args):
                names = [arg for arg in args[:-1] if isinstance(arg, Name)]
                bound = bound | {name.parts[0].lower() for name in names}
                return Apply(expression, tuple(self._node(a, stage_event, bound, inside) for a in args), self.source)
            case Call(function, args):
                if (meant := self._function_of_stage(function, args)) is not None:
                    return self._problem(f"no function {function!r}", expression.span, f"Did you mean {meant}?")
                before = len(self.problems)
                nodes = tuple(self._node(arg, stage_event, bound, inside) for arg in args)
                if len(self.problems) > before and (habit := habit_of_function(function)) is not None:
                    del self.problems[before:]  # of arguments that only the other language has
                    return self._problem(f"no function named {function!r}", expression.span, habit)
                return Apply(expression, nodes, self.source)

    def _function_of_stage(self, function: str, args: Sequence[Expression]) -> str | None:
        """The call that is meant by a misspelled one over a stage; None if it is another one."""
        match args:
            case [Name((name,))] if self._stage(name) is not None:
                close = closest(function, sorted(PATTERN_FUNCTIONS - {DISTINCT}))
                return f"{close[0]}({name})" if close else None
        return None

    def _stage(self, name: str) -> int | None:
        return next((i for i, stage in enumerate(self.stages) if stage.lower() == name.lower()), None)

    def _name(self, name: Name, stage_event: Event, inside: str | None) -> Node:
        stage = self._stage(name.parts[0])
        if stage is None:
            if self.measure:
                return self._which_stage(name)
            if inside:
                call = "count(DISTINCT " if inside == DISTINCT else f"{inside}("
                hint = f"Name the stage: {call}stage.{name.parts[-1]})."
                return self._problem(f"{call}…) looks over a stage's events, not the current one", name.span, hint)
            return self._column(name, CURRENT, name.span)
        if stage >= self.visible:
            known = ", ".join(self.stages[: self.visible])
            message = f"stage {self.stages[stage]!r} comes later, so it has no events yet"
            return self._problem(message, name.spans[0], f"Stages that can be referred to here: {known}")
        if len(name.parts) == 1:
            if self.columns is not None and _find(name.parts[0], self.columns.names) is not None:
                return self._column(name, CURRENT, name.span)  # that a stage has a column's name is a problem already
            written = name.parts[0]
            hint = f"Write {written}.column, first({written}.column, 1) for its second event, or count({written})."
            return self._problem(f"{self.stages[stage]!r} is a stage, not a value", name.span, hint)
        self.source.edits.append(((name.spans[0][0], name.spans[1][0]), ""))
        return self._column(Name(name.parts[1:], name.spans[1:]), replace(stage_event, stage=stage), name.span)

    def _which_stage(self, name: Name) -> Node:
        if self.columns is not None and _find(name.parts[0], self.columns.names) is None:
            return self._unknown(name)
        hint = f"Write {' or '.join(f'{s}.{name.parts[0]}' for s in self.stages[:3])}."
        return self._problem(f"which stage's {name.parts[0]!r}? A measure is about a whole match", name.span, hint)

    def _unknown(self, name: Name) -> Node:
        assert self.columns is not None
        if name.parts[0].lower() in NO_PARENTHESES:
            return self._problem(f"{name.parts[0]} {why_refused(name.parts[0].lower(), 0)}", name.spans[0])
        stages = list(self.stages[: self.visible])
        what = "column or stage" if len(name.parts) > 1 else "column"
        with_fields = [field.name for field in self.columns if pa.types.is_struct(field.type)]
        known = stages + with_fields if len(name.parts) > 1 else self.columns.names
        hint = did_you_mean(name.parts[0], known)
        if len(name.parts) > 1 and _find(name.parts[1], self.columns.names) and not closest(name.parts[0], known):
            hint = f"A column of the event itself is written alone: {name.parts[1]}."
        if len(name.parts) == 1 and not closest(name.parts[0], known):
            hint = habit_of_name(name.parts[0]) + hint
        return self._problem(f"no {what} named {name.parts[0]!r}", name.spans[0], hint)

    def _column(self, name: Name, event: Event, span: Span) -> Node:
        if self.columns is None:
            return Column(name, event, pa.null(), span=span, source=self.source)
        found = _find(name.parts[0], self.columns.names)
        if found is None:
            if event.stage is None:
                return self._unknown(name)
            hint = did_you_mean(name.parts[0], self.columns.names)
            return self._problem(f"no column named {name.parts[0]!r}", name.spans[0], hint)
        type_, parts = self.columns.field(found).type, [found]
        for part, part_span in zip(name.parts[1:], name.spans[1:], strict=True):
            if not pa.types.is_struct(type_):
                message = f"{'.'.join(parts)!r} has no fields: it is not a STRUCT"
                return self._problem(message, part_span)
            fields = [f.name for f in type_]
            inner = _find(part, fields)
            if inner is None:
                return self._problem(f"no field {part!r} in {'.'.join(parts)!r}", part_span, did_you_mean(part, fields))
            type_ = type_.field(inner).type
            parts.append(inner)
        return Column(replace(name, parts=tuple(parts)), event, type_, span=span, source=self.source)

    def _pattern_function(self, call: Call) -> Node:
        function, args = call.function, call.args
        fold = FOLDS.get(function)
        if fold is not None and fold.is_for_measures and not self.measure:
            hint = "In a condition use first, last, count, sum, avg, min, max, stddev or variance."
            return self._problem(f"{function} is for measures", call.span, hint)
        most, least = (2, 2) if fold is not None and fold.has_key else (1 if fold is not None else 2, 1)
        if not least <= len(args) <= most:
            takes = "2 arguments" if least == 2 else "1 or 2 arguments" if most == 2 else "1 argument"
            return self._problem(f"{function} takes {takes}", call.span)
        if function == "count" and isinstance(args[0], Name) and len(args[0].parts) == 1:
            return self._count_events(call, args[0])
        back = 0
        if len(args) == 2 and fold is None:
            offset = args[1]
            if not (isinstance(offset, Literal) and isinstance(offset.value, int) and offset.value >= 0):
                return self._problem(f"the second argument of {function} is a whole number, 0 or more", offset.span)
            back = offset.value
        return self._over_stage(call, Event(None, back, function == "first"))

    def _count_events(self, call: Call, name: Name) -> Node:
        stage = self._stage(name.parts[0])
        if stage is None:
            hint = did_you_mean(name.parts[0], self.stages[: self.visible])
            return self._problem(f"no stage named {name.parts[0]!r}", name.span, hint)
        if stage >= self.visible:
            return self._name(name, CURRENT, None)
        return Folded(Fold.COUNT, stage, None, span=call.span, source=self.source)

    def _over_stage(self, call: Call, event: Event) -> Node:
        before = len(self.problems)
        argument, *keys = (
            self._node(arg, event, frozenset(), call.function) for arg in call.args[: 1 + _is_keyed(call)]
        )
        if len(self.problems) > before:
            return argument
        stages = {e.stage for part in (argument, *keys) for e in events_of(part)}
        if len(stages) != 1:
            what = "names no stage" if not stages else "is about several stages"
            hint = f"Write {call.function}(stage.column), with columns of one stage."
            return self._problem(f"the argument of {call.function} {what}", call.args[0].span, hint)
        stage = stages.pop()
        assert stage is not None
        if call.function in ("first", "last"):
            start, end = call.args[0].span
            self.source.edits += [((call.span[0], start), "("), ((end, call.span[1]), ")")]
            return Pick(argument, span=call.span, source=self.source)
        return Folded(FOLDS[call.function], stage, argument, *keys, span=call.span, source=self.source)


def _is_keyed(call: Call) -> bool:
    """Whether the second argument of a pattern function is over the events, too."""
    fold = FOLDS.get(call.function)
    return fold is not None and fold.has_key


def _find(name: str, known: Sequence[str]) -> str | None:
    """The known name that Spark would match. Case does not count, unless two names differ only in case."""
    if name in known:
        return name
    return next((k for k in known if k.lower() == name.lower()), None)

"""The types of all parts of conditions, requested from the host's SQL engine at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.sql.habits import habit_of_refused
from cepheid.lang.sql.written import in_words
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.constant_texts.problems import known_type, text_problems
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.resolve import Apply, Node, Shape
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.engine import Question, SqlEngine


def check_boolean(lifting: Lifting, node: Node) -> None:
    type_ = lifting.type_of(node)
    if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
        assert node.source is not None
        message = f"a condition must be BOOLEAN, this is {sql_name(type_)}"
        hint = _hint(node, node, lifting.types)
        raise PatternError(Problem(message, node.source.where, node.source.text, resolve.span_of(node), hint))


@dataclass(frozen=True)
class _AskedType:
    question: Question
    node: Node
    whole: Node
    parts: frozenset[Shape]


def ask_types(
    engine: SqlEngine, nodes: Sequence[Node], columns: pa.Schema, problems: list[Problem]
) -> dict[Shape, pa.DataType]:
    """The types of all parts of the nodes that are about one event, as the engine gives them. If the engine refuses a
    part, the innermost refused part is reported. A constant text that is not cast is reported where it is written, even
    if the engine refuses what it is in for the same reason.
    """
    asked: dict[Shape, _AskedType] = {}
    for node in nodes:
        _collect(node, node, asked)
    answers = engine.types_of([a.question for a in asked.values()], columns) if asked else []
    types: dict[Shape, pa.DataType] = {}
    refused: set[Shape] = set()
    found: list[Problem] = []
    for (shape, question), answer in zip(asked.items(), answers, strict=True):
        if not isinstance(answer, Problem):
            types[shape] = answer
            continue
        if not question.parts & refused:
            found.append(_placed(answer, question, types))
        refused.add(shape)
    of_texts = [*text_problems(nodes, types)]
    told = {(problem.where, problem.message) for problem in of_texts}
    problems += [problem for problem in found if (problem.where, problem.message) not in told] + of_texts
    return types


def is_typed(node: Node, types: Mapping[Shape, pa.DataType]) -> bool:
    """Whether the engine refused none of the node's parts."""
    asked: dict[Shape, _AskedType] = {}
    _collect(node, node, asked)
    return asked.keys() <= types.keys()


def _collect(node: Node, whole: Node, asked: dict[Shape, _AskedType]) -> frozenset[Shape]:
    """Adds the parts of a node in a whole one, inner ones first, and returns their shapes."""
    if isinstance(node, Apply) and node.call.function == "lambda":
        return frozenset()  # a lambda has no type without the function around it
    parts = (
        frozenset().union(*(_collect(sub, whole, asked) for sub in resolve.subnodes(node)))
        if resolve.subnodes(node)
        else frozenset()
    )
    if not isinstance(node, Apply) or node.source is None or not resolve.is_of_one_event(node):
        return parts
    tree = resolve.tree_of(node)
    shape = resolve.shape_of(tree)
    asked.setdefault(shape, _AskedType((tree, resolve.sql_of(node)), node, whole, parts))
    return parts | {shape}


def _placed(problem: Problem, asked: _AskedType, types: Mapping[Shape, pa.DataType]) -> Problem:
    node = asked.node
    assert isinstance(node, Apply)
    assert node.source is not None
    span, message = problem.span or resolve.span_of(node), problem.message
    message = in_words(message, node.call.function, resolve.text_of(node))
    hint = _hint(asked.whole, node, types) or problem.hint
    return replace(problem, message=message, where=node.source.where, text=node.source.text, span=span, hint=hint)


def _hint(whole: Node, refused: Node, types: Mapping[Shape, pa.DataType]) -> str | None:
    """What is meant, if another language has it."""
    if not (isinstance(refused, Apply) and refused.source is not None):
        return None
    given = [known_type(arg, types) for arg in refused.args]
    return habit_of_refused(resolve.expression_of(whole), refused.call, refused.source.text, given)

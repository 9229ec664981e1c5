"""Problems at nodes, with their places in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.sql.habits import habit_of_refused
from cepheid.lang.sql.written import in_words
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.resolve import Apply, Node, Source


def problem_at(node: Node, message: str, hint: str | None = None) -> PatternError:
    """The error for a problem at the node, with the node's place in its text."""
    source = node.source
    where, text = (source.where, source.text) if source else (None, None)
    return PatternError(Problem(message, where, text, resolve.span_of(node), hint))


def placed(error: PatternError, node: Node, types: Sequence[pa.DataType] = ()) -> PatternError:
    """The error with the node's text in the problems that have none; `types` are those of the node's operands."""
    source = node.source
    if source is None:
        return error
    return PatternError([p if p.text else _in_source(p, node, source, types) for p in error.problems])


def _in_source(problem: Problem, node: Node, source: Source, types: Sequence[pa.DataType]) -> Problem:
    message, hint = problem.message, problem.hint
    if isinstance(node, Apply):
        message = in_words(message, node.call.function, resolve.text_of(node))
        hint = habit_of_refused(node.call, node.call, source.text, types) or hint
    return replace(problem, message=message, where=source.where, text=source.text, hint=hint)

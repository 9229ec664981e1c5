"""The parts of a stage's conditions that must all be true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.errors import PatternError
from cepheid.lang.expression import Call, Expression, Literal, Span
from cepheid.lang.sql.parser import parse_expression
from cepheid.lang.sql.tokens import Kind, tokenize
from cepheid.lang.stages.conditions import Condition, Subtype

Conditions = Sequence[Condition | Subtype]
"""The conditions of a stage, in the order in which they were given."""


@dataclass(frozen=True)
class Conjunct:
    """A part of the conditions of a stage that must be true: an AND-ed part of one of them, or conditions that
    `or_where` joins.
    """

    text: str
    """As the user wrote it."""
    first: int
    """The number of its first condition."""
    last: int
    """The number of its last condition."""
    part: int | None = None
    """Its number among the AND-ed parts of its only condition; None: the conditions as a whole."""


def conjuncts_of(conditions: Conditions) -> Iterator[Conjunct]:
    """The conjuncts of a stage's conditions, in order."""
    joined = max((number for number, one in enumerate(conditions) if _is_alternative(one)), default=-1)
    if joined >= 0:
        yield Conjunct(joined_text(conditions[: joined + 1]), 0, joined)
    for number, condition in enumerate(conditions[joined + 1 :], start=joined + 1):
        texts = _parts(condition)
        if len(texts) == 1:
            yield Conjunct(condition.text, number, number)
        else:
            yield from (Conjunct(text, number, number, part) for part, text in enumerate(texts))


def without(conditions: Conditions, conjunct: Conjunct) -> tuple[Condition | Subtype, ...]:
    """The conditions without the conjunct."""
    before, after = conditions[: conjunct.first], conditions[conjunct.last + 1 :]
    if conjunct.part is None:
        return (*before, *after)
    condition = conditions[conjunct.first]
    assert isinstance(condition, Condition)
    texts = [f"({text})" for number, text in enumerate(_parts(condition)) if number != conjunct.part]
    return (*before, replace(condition, text=" AND ".join(texts)), *after)


def joined_text(conditions: Conditions) -> str:
    """The conditions as the user wrote them."""
    text = ""
    for condition in conditions:
        joint = " or " if _is_alternative(condition) else " and "
        text += (joint if text else "") + condition.text
    return text


def _is_alternative(condition: Condition | Subtype) -> bool:
    return isinstance(condition, Condition) and condition.alternative


def _parts(condition: Condition | Subtype) -> list[str]:
    """The texts of the AND-ed parts. A text that is no SQL, or is wrong, is one part."""
    if isinstance(condition, Subtype) or condition.function is not None or condition.is_semantic:
        return [condition.text]
    try:
        names = [one.text.removeprefix("$") for one in tokenize(condition.text) if one.kind is Kind.PARAMETER]
        null = Literal(None, pa.null(), (0, 0))
        spans = [*_spans(parse_expression(condition.text, dict.fromkeys(names, null)))]
    except PatternError:
        return [condition.text]
    return [condition.text] if len(spans) == 1 else [condition.text[start:end] for start, end in spans]


def _spans(expression: Expression) -> Iterator[Span]:
    if isinstance(expression, Call) and expression.function == "and":
        for arg in expression.args:
            yield from _spans(arg)
    else:
        yield expression.span

"""Answers to a filter as values of one type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import KnowledgeError
from cepheid.knowledge.column import AnswerColumn
from cepheid.knowledge.filters.values import Duration, Moment, NoValue, value_of
from cepheid.knowledge.terms import Iri, Literal, Term

_MOST_DIGITS = 38


class ShownAnswers(NamedTuple):
    """Answers as values of a column."""

    value: Mapping[Term, Any]
    type: pa.DataType


def shown_answers(column: AnswerColumn, terms: Collection[Term]) -> ShownAnswers:
    """The values of a column for these answers: for an individual its least name, for a literal its value. Without
    answers the type is that of texts.

    Raises:
        KnowledgeError: they are of several types, or of one that no column has.
    """
    by_kind: dict[str, list[Term]] = {}
    for term in sorted(terms, key=str):
        by_kind.setdefault(_kind(term), []).append(term)
    if len(by_kind) > 1:
        found = ", ".join(f"{kind} such as {some[0]}" for kind, some in by_kind.items())
        message = f"the answers for ?{column.variable} are of several types: {found}"
        raise KnowledgeError(f"{message}. A column has one: let the filter ask for one kind of them")
    kind, some = next(iter(by_kind.items()), (_INDIVIDUALS, []))
    if kind == _INDIVIDUALS:
        return ShownAnswers(
            {one: column.knowledge.least_name(one) for one in some if isinstance(one, Iri)}, pa.string()
        )
    if kind not in _COLUMNS:
        raise KnowledgeError(f"the answers for ?{column.variable} are {kind} such as {some[0]}, which no column has")
    type_of, convert = _COLUMNS[kind]
    values = [convert(_value(one)) for one in some]
    try:
        type_ = type_of(values)
        pa.array(values, type_)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise KnowledgeError(f"the answers for ?{column.variable} do not fit a column of {kind}: {error}") from None
    return ShownAnswers(dict(zip(some, values, strict=True)), type_)


_INDIVIDUALS = "individuals"


def _kind(term: Term) -> str:
    """The kind of values, of which a column has one."""
    if isinstance(term, Iri):
        return _INDIVIDUALS
    try:
        value = _value(term)
    except NoValue:
        return "literals that are not of their type"
    match value:
        case bool():
            return "booleans"
        case int():
            return "integers"
        case Decimal():
            return "decimals"
        case float():
            return "doubles"
        case str():
            return "texts"
        case Moment(kind="date") if not value.zoned:
            return "dates"
        case Moment(kind="dateTime"):
            return f"dateTimes {'with' if value.zoned else 'without'} a zone"
        case Duration(kind="dayTimeDuration"):
            return "dayTimeDurations"
    return f"literals of the type {term.datatype}"


def _value(term: Term) -> Any:
    """The value of a literal; of a text in a language, the text."""
    assert isinstance(term, Literal)
    return value_of(term) if term.language is None else term.text


def _decimal_type(values: Sequence[Decimal]) -> pa.DataType:
    """The smallest type that has all of the values."""
    scale = max(0, *(-int(value.normalize().as_tuple().exponent) for value in values))
    digits = max(1, *(value.adjusted() + 1 for value in values)) + scale
    if digits > _MOST_DIGITS:
        raise ValueError(f"they have more than {_MOST_DIGITS} digits")
    return pa.decimal128(digits, scale)


def _of(type_: pa.DataType) -> Callable[[Sequence[Any]], pa.DataType]:
    return lambda _: type_


def _same(value: Any) -> Any:
    return value


def _date(value: Moment) -> Any:
    return value.at.date()


def _instant(value: Moment) -> Any:
    return value.at


def _duration(value: Duration) -> timedelta:
    return timedelta(microseconds=int(value.amount * 1_000_000))


_COLUMNS: Mapping[str, tuple[Callable[[Sequence[Any]], pa.DataType], Callable[[Any], Any]]] = {
    "booleans": (_of(pa.bool_()), _same),
    "integers": (_of(pa.int64()), _same),
    "decimals": (_decimal_type, _same),
    "doubles": (_of(pa.float64()), _same),
    "texts": (_of(pa.string()), _same),
    "dates": (_of(pa.date32()), _date),
    "dateTimes with a zone": (_of(pa.timestamp("us", "UTC")), _instant),
    "dateTimes without a zone": (_of(pa.timestamp("us")), _instant),
    "dayTimeDurations": (_of(pa.duration("us")), _duration),
}
"""The type of a column and its values, by what they are."""

"""Names of individuals as SQL over the columns that they are made of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from cepheid.knowledge.events.names import Template, encoded, is_template, name_of
from cepheid.knowledge.terms import Iri
from cepheid.lang.parameters import string_literal
from cepheid.plan.conditions.types import is_integer, is_string
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.name_lists import BETWEEN, LONG, in_list, joined

_T = TypeVar("_T")
MOST_PARTS = 1000
"""The most pairs of lists of which one must be true."""


def quoted(column: str) -> str:
    return f"`{column.replace('`', '``')}`"


def written_names(name: Iri, prefixes: Mapping[str, str]) -> list[str]:
    """The ways in which a column of names may have this name."""
    rests = [
        (prefix, rest)
        for prefix, iri in prefixes.items()
        if name.value.startswith(iri) and (rest := name.value.removeprefix(iri))
    ]
    short = [way for prefix, rest in rests for way in ([f"{prefix}:{rest}"] if prefix else [rest, f":{rest}"])]
    ways = [name.value, f"<{name.value}>", *short]
    if _PLAIN.fullmatch(name.value) and all(_LOCAL.fullmatch(rest) and prefix not in _WHOLE for prefix, rest in rests):
        return ways  # most names are so; to read each way of many takes long
    return [way for way in dict.fromkeys(ways) if _reads_as(way, name, prefixes)]


_PLAIN = re.compile(r"https?://[A-Za-z0-9._~/#-]*")
"""Names that need no look at their characters."""
_LOCAL = re.compile(r"[A-Za-z0-9_-]+")
"""What is surely a name after a prefix, or in the prefix "" without it."""
_WHOLE = ("urn", "tag")
"""Prefixes with which a name is taken as whole."""


def _reads_as(text: str, name: Iri, prefixes: Mapping[str, str]) -> bool:
    try:
        return name_of(text, prefixes) == name
    except ValueError:
        return False


Listed: TypeAlias = Callable[[Collection[_T]], str]
"""SQL of whether a value is one of these."""


def in_rows(listed: Sequence[Listed[_T]], rows: Collection[tuple[_T, ...]]) -> str:
    """SQL: whether the values are together in one of the rows."""
    first, *others = listed
    if not others:
        return first([one for (one,) in rows])
    rest = defaultdict[_T, set[tuple[_T, ...]]](set)
    for one, *more in rows:
        rest[one].add(tuple(more))
    groups = defaultdict[frozenset[tuple[_T, ...]], list[_T]](list)
    for one, tails in rest.items():
        groups[frozenset(tails)].append(one)
    if len(groups) > MOST_PARTS:
        raise NotLifted(f"more than {MOST_PARTS:,} pairs of names make it true")
    parts = [f"({first(heads)} AND ({in_rows(others, tails)}))" for tails, heads in groups.items()]
    return f"({' OR '.join(sorted(parts))})" if parts else "FALSE"


class Names:
    """Names that a column has, or that a template makes of columns."""

    def __init__(self, written: str, columns: pa.Schema, prefixes: Mapping[str, str]) -> None:
        """NotLifted if it is made of columns whose values cannot be compared as parts of names."""
        self._prefixes = prefixes
        self.columns: tuple[str, ...] = (written,)
        self._around: tuple[str, ...] | None = None
        """The texts before, between and after the columns of a template; None: the column has names."""
        if is_template(written):
            self._around, self.columns = _parts(written, prefixes)
        types = [columns.field(column).type for column in self.columns]
        self._are_texts = tuple(map(is_string, types))
        for column, type_ in zip(self.columns, types, strict=True):
            if not (is_string(type_) or is_integer(type_)):
                raise NotLifted(f"the column {column!r} of names is neither STRING nor a whole number")
        self.column, self._is_text = self.columns[0], self._are_texts[0]

    def among(self, names: Collection[Iri], prefix: str) -> str:
        """SQL: whether the event has one of these names. `prefix` comes before the columns."""
        rows = {values for one in names for values in self._rows(one)}
        columns = [f"{prefix}{quoted(column)}" for column in self.columns]
        if len(columns) > 1 and len(rows) > LONG and not any(BETWEEN in value for row in rows for value in row):
            return in_list(joined(columns, self._are_texts), {BETWEEN.join(row) for row in rows}, of_texts=True)
        each = zip(columns, self._are_texts, strict=True)
        return in_rows([partial(in_list, column, of_texts=of_texts) for column, of_texts in each], rows)

    def _rows(self, name: Iri) -> Iterator[tuple[str, ...]]:
        """The values of the columns that give the name."""
        if self._around is None:
            yield from ((way,) for way in written_names(name, self._prefixes))
            return
        first, *others = self._around
        if name.value.startswith(first):
            for values in _split(name.value[len(first) :], others):
                found = [*map(_value, values, self._are_texts)]
                if None not in found:
                    yield tuple(map(str, found))

    def _values(self, name: Iri) -> Iterator[str]:
        """The values of the one column that give the name, as SQL."""
        return (string_literal(value) if self._is_text else value for (value,) in self._rows(name))

    def equal(self, prefix: str, other: Names, others_prefix: str, aliases: Mapping[Iri, Iri]) -> str:
        """SQL: whether two events have the same name here and there; `aliases` has for names of one individual the
        one that stands for all.

        Raises:
            NotLifted: it has no SQL.
        """
        sides = (self, prefix), (other, others_prefix)
        alike = self._around == other._around is not None and self._are_texts == other._are_texts
        if len(self.columns) > 1 or len(other.columns) > 1:
            if not (alike and self._is_unambiguous) or any(next(self._rows(one), None) for one in aliases):
                raise NotLifted("names that templates make of several columns are compared")
            pairs = zip(*([f"{before}{quoted(one)}" for one in names.columns] for names, before in sides), strict=True)
            return " AND ".join(f"{one} = {two}" for one, two in pairs)
        if alike:
            return " = ".join(names.value(before, aliases) for names, before in sides)
        return " = ".join(names.whole(before, aliases) for names, before in sides)

    @property
    def _is_unambiguous(self) -> bool:
        """Whether different values give different names: between two columns is what no value has."""
        return self._around is not None and all(
            any(encoded(char) != char and char != "%" for char in between) for between in self._around[1:-1]
        )

    def value(self, prefix: str, aliases: Mapping[Iri, Iri]) -> str:
        """SQL: the value of the column, of several for one individual always the same."""
        groups = defaultdict[Iri, list[str]](list)
        for one, known in sorted(aliases.items(), key=lambda pair: pair[0].value):
            groups[known] += self._values(one)
        column = f"{prefix}{quoted(self.column)}"
        renamed = [(value, group[0]) for group in groups.values() for value in group[1:]]
        whens = "".join(f" WHEN {column} = {value} THEN {first}" for value, first in renamed)
        return f"CASE{whens} ELSE {column} END" if whens else column

    def whole(self, prefix: str, aliases: Mapping[Iri, Iri]) -> str:
        """SQL: the name as text, in the prefix "" without it; of several for one individual always the same."""
        column = f"{prefix}{quoted(self.column)}"
        default = self._prefixes.get("", "")
        renamed = [
            (value, known.value.removeprefix(default)) for one, known in aliases.items() for value in self._values(one)
        ]
        whens = "".join(f" WHEN {column} = {value} THEN {string_literal(known)}" for value, known in renamed)
        if self._around is not None:
            before, after = self._around[0], self._around[-1]
            if self._is_text:
                raise NotLifted(f"names that a template makes of texts ({self.column!r}) are compared with others")
            before = string_literal(before.removeprefix(default))
            text = f"concat({before}, CAST({column} AS STRING), {string_literal(after)})"
        else:
            text = self._expanded(column)
        name = f"CASE{whens} ELSE {text} END" if whens else text
        # The substring is all of it. It is NULL without an event, which is not known of CASE; so it is a lifted column.
        return f"substring({name}, length({column}) - length({column}) + 1)" if self._is_text else name

    def _expanded(self, column: str) -> str:
        """SQL: the name that a column of names has; in the prefix "" without it, as most are, and others whole."""
        default = self._prefixes.get("", "")
        short = "".join(
            f" WHEN {column} LIKE {string_literal(_like(prefix) + ':%')} "
            f"THEN concat({string_literal(iri)}, substring({column}, {len(prefix) + 2}))"
            for prefix, iri in {**self._prefixes, "": default}.items()
        )
        whole = (
            f"CASE WHEN {column} LIKE '<%:%>' THEN substring({column}, 2, length({column}) - 2)"
            f" WHEN {column} LIKE '%://%' OR {column} LIKE 'urn:%' OR {column} LIKE 'tag:%' THEN {column}{short}"
            f" ELSE {column} END"
        )
        own = string_literal(f"{_like(default)}%")
        colon = f"CASE WHEN {whole} LIKE {own} THEN substring({whole}, {len(default) + 1}) ELSE {whole} END"
        return f"CASE WHEN {column} LIKE '%:%' THEN {colon} ELSE {column} END"


def _parts(written: str, prefixes: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts before, between and after the columns of a template, and the columns."""
    around, columns = [""], list[str]()
    for text, is_column in Template(written).whole(prefixes):
        if is_column:
            columns.append(text)
            around.append("")
        else:
            around[-1] += text
    if len({*columns}) < len(columns):
        raise NotLifted(f"{written} has a column twice")
    return tuple(around), tuple(columns)


def _split(text: str, after: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The values, encoded, that give the text with these texts after them."""
    mark, *others = after
    if not others:
        if text.endswith(mark):
            yield (text[: len(text) - len(mark)],)
        return
    at = text.find(mark)
    while at >= 0:
        yield from ((text[:at], *rest) for rest in _split(text[at + len(mark) :], others))
        at = text.find(mark, at + 1)


def _value(given: str, is_text_: bool) -> str | None:  # noqa: FBT001 - an element of a tuple
    """The value of a column that is so in a name; None if there is none."""
    value = unquote(given)
    if encoded(value) != given:
        return None
    if is_text_:
        return value
    digits = value.removeprefix("-")
    return value if digits.isascii() and digits.isdigit() and str(int(value)) == value else None


def _like(text: str) -> str:
    """The text as a pattern of LIKE that matches only itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

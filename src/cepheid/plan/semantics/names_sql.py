"""Names of individuals as SQL over the columns that they are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa

from cepheid.knowledge.events.mapping import Individual
from cepheid.knowledge.events.names import Template, encoded, is_template
from cepheid.knowledge.terms import Iri, Term
from cepheid.lang.parameters import string_literal
from cepheid.plan.conditions.types import is_integer, is_string
from cepheid.plan.semantics.column_values import cells_of
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.name_lists import BETWEEN, LONG, in_list, joined

_T = TypeVar("_T")
MOST_PARTS = 1000
"""The most pairs of lists of which one must be true."""


def quoted(column: str) -> str:
    return f"`{column.replace('`', '``')}`"


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
        self._written, self._prefixes = written, prefixes
        self.columns: tuple[str, ...] = (written,)
        self._around: tuple[str, ...] | None = None
        """The texts before, between and after the columns of a template; None: the column has names."""
        if is_template(written):
            self._around, self.columns = _parts(written, prefixes)
        self._types = {column: columns.field(column).type for column in self.columns}
        for column, type_ in self._types.items():
            if not (is_string(type_) or is_integer(type_)):
                raise NotLifted(f"the column {column!r} of names is neither STRING nor a whole number")
        self._are_texts = tuple(map(is_string, self._types.values()))
        self.column, self._is_text = self.columns[0], self._are_texts[0]

    def among(self, names: Collection[Iri], prefix: str) -> str:
        """SQL: whether the event has one of these names. `prefix` comes before the columns."""
        rows = {row for some in self._rows(names).values() for row in some}
        columns = [f"{prefix}{quoted(column)}" for column in self.columns]
        if len(columns) > 1 and len(rows) > LONG and not any(BETWEEN in value for row in rows for value in row):
            return in_list(joined(columns, self._are_texts), {BETWEEN.join(row) for row in rows}, of_texts=True)
        each = zip(columns, self._are_texts, strict=True)
        return in_rows([partial(in_list, column, of_texts=of_texts) for column, of_texts in each], rows)

    def _rows(self, names: Collection[Iri]) -> Mapping[Term, Sequence[tuple[str, ...]]]:
        """The values of the columns that give each name, as texts."""
        found = cells_of(Individual(self._written), [*names], self._types, self._prefixes)
        return {
            name: [tuple(str(cells[column]) for column in self.columns) for cells in ways]
            for name, ways in found.items()
        }

    def _values(self, names: Collection[Iri]) -> Mapping[Term, Sequence[str]]:
        """The values of the one column that give each name, as SQL."""
        shown = string_literal if self._is_text else str
        return {name: [shown(value) for (value,) in rows] for name, rows in self._rows(names).items()}

    def equal(self, prefix: str, other: Names, others_prefix: str, aliases: Mapping[Iri, Iri]) -> str:
        """SQL: whether two events have the same name here and there; `aliases` has for names of one individual the
        one that stands for all.

        Raises:
            NotLifted: it has no SQL.
        """
        sides = (self, prefix), (other, others_prefix)
        alike = self._around == other._around is not None and self._are_texts == other._are_texts
        if len(self.columns) > 1 or len(other.columns) > 1:
            if not (alike and self._is_unambiguous) or self._rows(aliases):
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
        values, groups = self._values(aliases), defaultdict[Iri, list[str]](list)
        for one, known in sorted(aliases.items(), key=lambda pair: pair[0].value):
            groups[known] += values.get(one, ())
        column = f"{prefix}{quoted(self.column)}"
        renamed = [(value, group[0]) for group in groups.values() for value in group[1:]]
        whens = "".join(f" WHEN {column} = {value} THEN {first}" for value, first in renamed)
        return f"CASE{whens} ELSE {column} END" if whens else column

    def whole(self, prefix: str, aliases: Mapping[Iri, Iri]) -> str:
        """SQL: the name as text, in the prefix "" without it; of several for one individual always the same."""
        column = f"{prefix}{quoted(self.column)}"
        default, values = self._prefixes.get("", ""), self._values(aliases)
        renamed = [
            (value, known.value.removeprefix(default))
            for one, known in aliases.items()
            for value in values.get(one, ())
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


def _like(text: str) -> str:
    """The text as a pattern of LIKE that matches only itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

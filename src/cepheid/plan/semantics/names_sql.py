"""Names of individuals as SQL over the columns that they are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa

from cepheid.knowledge.events.mapping import Individual
from cepheid.knowledge.events.names import Template, encoded, is_template, is_whole
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
        self._written, self._prefixes, self._form = written, prefixes, NormalForm(prefixes)
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
        columns = [f"{prefix}{quoted(column)}" for column in self.columns]
        if self._around is None and len(names) > LONG:
            forms = {self._form.of(one) for one in names if not one.is_made_up}
            return in_list(self._form.sql(columns[0]), forms, of_texts=True)
        rows = {row for some in self._rows(names).values() for row in some}
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
        return _renamed(column, renamed, column)

    def whole(self, prefix: str, aliases: Mapping[Iri, Iri]) -> str:
        """SQL: the normal form of the name; of several for one individual always the same."""
        column, values = f"{prefix}{quoted(self.column)}", self._values(aliases)
        renamed = [
            (value, string_literal(self._form.of(known)))
            for one, known in aliases.items()
            for value in values.get(one, ())
        ]
        if self._around is None:
            return _renamed(column, renamed, self._form.sql(column))
        if self._is_text:
            raise NotLifted(f"names that a template makes of texts ({self.column!r}) are compared with others")
        before, after = self._around
        return _renamed(column, renamed, self._form.made(before, f"CAST({column} AS STRING)", after))


def _renamed(column: str, values: Sequence[tuple[str, str]], otherwise: str) -> str:
    """SQL: for some values of a column others, as pairs say."""
    whens = "".join(f" WHEN {column} = {value} THEN {other}" for value, other in values)
    return f"CASE{whens} ELSE {otherwise} END" if whens else otherwise


class NormalForm:
    """One text for each name, in whatever way it is written: for one in the prefix "" what comes after the prefix, for
    another one `<name>`.
    """

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes, self._own = prefixes, prefixes.get("", "")

    def of(self, name: Iri) -> str:
        rest = name.value.removeprefix(self._own)
        return rest if rest and len(rest) < len(name.value) else f"<{name.value}>"

    def made(self, before: str, column: str, after: str) -> str:
        """SQL: that of a name that is made of texts around a column, which is not empty."""
        own = self._own
        if own and before.startswith(own):
            return f"concat({string_literal(before.removeprefix(own))}, {column}, {string_literal(after)})"
        if own.startswith(before):
            raise NotLifted("a template makes names in the prefix '' and others")
        return f"concat({string_literal(f'<{before}')}, {column}, {string_literal(f'{after}>')})"

    def sql(self, column: str) -> str:
        """SQL: that of the name in a column of names. For a text that is no name it is NULL, or not that of a name.

        It has nothing that can fail, such as arithmetic. So all of it is one lifted column.
        """
        own, whens = self._own, [f"NOT contains({column}, ':') THEN {column}", f"instr({column}, '<') > 1 THEN NULL"]
        if own:
            inner = f"replace({_after(column, f'<{own}')}, '>', '')"
            is_inner = f"instr({column}, '>') = length({column}) AND {column} != {string_literal(f'<{own}>')}"
            whens.append(f"{_begins(column, f'<{own}')} AND {is_inner} THEN {inner}")
        whens.append(f"startswith({column}, '<') AND endswith({column}, '>') THEN {column}")
        whole = _is_whole(column)
        if own:
            guard = "" if is_whole(own) else f"({whole}) AND "
            whens.append(f"{guard}{_continues(column, own)} THEN {_after(column, own)}")
        whens.append(f"{whole} THEN concat('<', {column}, '>')")
        for prefix, iri in self._prefixes.items():
            whens += self._of_prefix(column, f"{prefix}:", iri)
        return f"CASE{''.join(f' WHEN {one}' for one in whens)} END"

    def _of_prefix(self, column: str, prefix: str, iri: str) -> Iterator[str]:
        """The branches for names with a prefix, which has a colon here."""
        own, rest = self._own, _after(column, prefix)
        if own and iri != own and iri.startswith(own):
            yield f"{_begins(column, prefix)} THEN concat({string_literal(iri.removeprefix(own))}, {rest})"
            return
        if own and own.startswith(iri):
            start = prefix + own.removeprefix(iri)
            yield f"{_continues(column, start)} THEN {_after(column, start)}"
        yield f"{_begins(column, prefix)} THEN concat({string_literal(f'<{iri}')}, {rest}, '>')"


def _is_whole(column: str) -> str:
    """SQL of `is_whole`. Most other names have no `://`, which is found sooner than that the pattern does not match."""
    return (
        f"{_begins(column, 'urn:')} OR {_begins(column, 'tag:')} OR "
        f"(contains({column}, '://') AND {column} RLIKE '^[A-Za-z][A-Za-z0-9+.-]*://')"
    )


def _begins(column: str, start: str) -> str:
    """SQL: whether a value begins with a text."""
    return f"startswith({column}, {string_literal(start)})"


def _continues(column: str, start: str) -> str:
    """SQL: whether a value begins with a text, and has more."""
    return f"{_begins(column, start)} AND {column} != {string_literal(start)}"


def _after(column: str, start: str) -> str:
    """SQL: what a value has after the text with which it begins."""
    return f"substring({column}, {len(start) + 1})"


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

"""Names of individuals as SQL over the columns that they are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote

import pyarrow as pa

from cepheid.knowledge.events.names import Template, encoded, is_template, name_of
from cepheid.knowledge.terms import Iri
from cepheid.lang.parameters import string_literal
from cepheid.plan.semantics.inert import NotLifted


def quoted(column: str) -> str:
    return f"`{column.replace('`', '``')}`"


def written_names(name: Iri, prefixes: Mapping[str, str]) -> list[str]:
    """The ways in which a column of names may have this name."""
    short = [
        way
        for prefix, iri in prefixes.items()
        if name.value.startswith(iri) and (rest := name.value.removeprefix(iri))
        for way in ([f"{prefix}:{rest}"] if prefix else [rest, f":{rest}"])
    ]
    ways = [name.value, f"<{name.value}>", *short]
    return [way for way in dict.fromkeys(ways) if _reads_as(way, name, prefixes)]


def _reads_as(text: str, name: Iri, prefixes: Mapping[str, str]) -> bool:
    try:
        return name_of(text, prefixes) == name
    except ValueError:
        return False


class Names:
    """Names that a column has, or that a template makes of one column."""

    def __init__(self, written: str, columns: pa.Schema, prefixes: Mapping[str, str]) -> None:
        """NotLifted if it is made of several columns, or of one whose values cannot be compared as names."""
        self._prefixes = prefixes
        self._around: tuple[str, str] | None = None
        """The texts before and after the column in a template; None: the column has names."""
        self.column = written
        if is_template(written):
            parts = Template(written).whole(prefixes)
            named = [text for text, is_column in parts if is_column]
            if len(named) != 1:
                raise NotLifted(f"{written} is made of several columns")
            at = parts.index((named[0], True))
            before, after = ("".join(text for text, _ in some) for some in (parts[:at], parts[at + 1 :]))
            self._around, self.column = (before, after), named[0]
        type_ = columns.field(self.column).type
        self._is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
        if not (self._is_text or pa.types.is_integer(type_)):
            raise NotLifted(f"the column {self.column!r} of names is neither STRING nor a whole number")

    def among(self, names: Collection[Iri], prefix: str) -> str:
        """SQL: whether the event has one of these names. `prefix` comes before the column."""
        values = sorted({value for one in names for value in self._values(one)})
        return f"{prefix}{quoted(self.column)} IN ({', '.join(values)})" if values else "FALSE"

    def _values(self, name: Iri) -> Iterator[str]:
        """The values of the column that give the name, as SQL."""
        if self._around is None:
            yield from map(string_literal, written_names(name, self._prefixes))
            return
        before, after = self._around
        inner = name.value[len(before) : len(name.value) - len(after)]
        if not (name.value.startswith(before) and name.value.endswith(after)) or len(inner) == 0:
            return
        value = unquote(inner)
        if encoded(value) != inner:
            return
        if self._is_text:
            yield string_literal(value)
        elif value.removeprefix("-").isascii() and value.removeprefix("-").isdigit() and str(int(value)) == value:
            yield value

    def equal(self, prefix: str, other: Names, others_prefix: str, aliases: Mapping[Iri, Iri]) -> str:
        """SQL: whether two events have the same name here and there; `aliases` has for names of one individual the
        one that stands for all.
        """
        sides = (self, prefix), (other, others_prefix)
        if self._around == other._around is not None and self._is_text == other._is_text:
            return " = ".join(names.value(before, aliases) for names, before in sides)
        return " = ".join(names.whole(before, aliases) for names, before in sides)

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
            before, after = self._around
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


def _like(text: str) -> str:
    """The text as a pattern of LIKE that matches only itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

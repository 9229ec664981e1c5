"""A column of answers as a table of values: which answers events have by the values of their columns.

The filter is solved once over the knowledge, with the variables that events bind left free. Each solution becomes the
values of columns that name its individuals. So a host only joins events with this table on their columns; it needs no
function of its own, and on Spark nothing runs before the query does. Variables that stand in built-ins only are tried
for each value that the events have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa

from cepheid.errors import SchemaError, did_you_mean
from cepheid.knowledge.column import AnswerColumn
from cepheid.knowledge.events.literals import fits, literals
from cepheid.knowledge.filters.solving import Solution, solutions
from cepheid.knowledge.filters.syntax import SWRLB, Atom, Variable
from cepheid.knowledge.filters.variables import variables_of
from cepheid.knowledge.terms import Iri
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.semantics.answer_types import shown_answers
from cepheid.plan.semantics.column_values import Cells, cells_of, joined

MOST_VALUES = 100_000
"""The most values of the events for which a filter is asked one by one."""
_EQUAL = Iri(f"{SWRLB}equal")


def checked_name(column: AnswerColumn, events: pa.Schema, name: str | None) -> str:
    """The name of the new column.

    Raises:
        SchemaError: the events have a column of the name, or lack columns that the answers depend on, or these are of
            other types; the message has all such faults.
    """
    name = column.variable if name is None else name
    faults = []
    if not name:
        faults.append(f"name: the name of the new column is expected, got {name!r}")
    elif same := [one for one in events.names if one.lower() == name.lower()]:
        faults.append(f"name: the events have a column {same[0]!r}. Give the new one another name, with name=")
    faults += _column_faults(column, events)
    if faults:
        raise SchemaError("\n".join(faults))
    return name


def _column_faults(column: AnswerColumn, events: pa.Schema) -> Iterator[str]:
    for one, readings in column.readings.items():
        if (count := events.names.count(one)) != 1:
            hint = did_you_mean(one, events.names)
            what = f"the events have no column {one!r}\n{hint}" if not count else f"two columns are named {one!r}"
            yield f"bindings: {what}"
            continue
        type_ = events.field(one).type
        if unfit := [reading.value for reading in readings if not fits(type_, reading)]:
            yield f"bindings: the column {one!r} must be {' and '.join(unfit)}; it is {sql_name(type_)}"


def tested_columns(column: AnswerColumn) -> tuple[str, ...]:
    """The columns whose values in the events must be known, as the knowledge alone does not say for which the filter
    holds.
    """
    return tuple(dict.fromkeys(str(source) for name, source in column.bindings if name in column.tested))


def too_many(columns: Sequence[str]) -> str:
    """The message for more than MOST_VALUES distinct values."""
    message = f"the events have more than {MOST_VALUES:,} values in {' and '.join(map(repr, columns))}"
    return f"{message}, for each of which the filter would be asked. {_ADVICE}"


def unknown_values(columns: Sequence[str]) -> str:
    """The message for events whose values cannot be known beforehand."""
    message = f"the values of {' and '.join(map(repr, columns))} are only compared and computed with"
    return f"{message}, so the answers depend on values that a stream has not had yet. {_ADVICE}"


_ADVICE = (
    "Let the filter return the limit, as in knowledge.column('hasLimit(?room, ?limit)', 'limit', …), "
    "and compare with SQL"
)


class Answers(NamedTuple):
    """Which answers events have."""

    keys: pa.Table
    """Distinct values of the columns that the answers depend on. A row for each answer."""
    values: pa.Array
    """The answers, ascending."""


def answers(column: AnswerColumn, events: pa.Schema, values: pa.Table | None = None) -> Answers:
    """The answers by the values of columns. Events with other values have none.

    Args:
        column: What is asked.
        events: The events' columns, in the types that Spark has.
        values: The distinct values that the events have in `tested_columns`, if there are any.

    Raises:
        KnowledgeError: the answers are of several types, or of one that no column has.
    """
    types = {one: events.field(one).type for one in column.readings}
    names = [name for name, _ in column.bindings]
    found = {
        (*(solution[name] for name in names), solution[column.variable]) for solution in _solutions(column, values)
    }
    cells = [
        cells_of(source, [*{row[at] for row in found}], types, column.knowledge.prefixes)
        for at, (_, source) in enumerate(column.bindings)
    ]
    shown = shown_answers(column, {row[-1] for row in found})
    rows = {
        (*(key[one] for one in types), shown.value[row[-1]])
        for row in found
        for key in _keys([each.get(term, []) for each, term in zip(cells, row[:-1], strict=True)])
    }
    *keys, last = zip(*sorted(rows, key=itemgetter(-1)), strict=True) if rows else [()] * (len(types) + 1)
    arrays = [pa.array(some, type_) for some, type_ in zip(keys, types.values(), strict=True)]
    return Answers(pa.table(arrays, names=[*types]), pa.array(last, shown.type))


def _keys(each: Sequence[Sequence[Cells]]) -> Iterator[Cells]:
    """The values of columns that mean all of some terms, each of which several values may mean."""
    together = (joined(iter(some)) for some in product(*each))
    return (key for key in together if key is not None)


def _solutions(column: AnswerColumn, values: pa.Table | None) -> Iterator[Solution]:
    closure, atoms = column.knowledge.closure, [*_by_value(column)]
    if not column.tested:
        yield from solutions(atoms, closure, {})
        return
    asked = [atom for atom in atoms if atom.kind != "builtin"]
    known = {*variables_of(asked)}
    asked += [atom for atom in atoms if atom.kind == "builtin" and known.issuperset(variables_of([atom]))]
    waiting = [atom for atom in atoms if atom not in asked]
    solved = [*solutions(asked, closure, {})]
    for given in _given(column, values):
        for one in solved:
            yield from solutions(waiting, closure, one | given)


def _by_value(column: AnswerColumn) -> Iterator[Atom]:
    """The filter, in which values of events are equal to literals of the knowledge by value, as constants are: 34 is
    34.0. A variable that is such a value in several atoms is therefore a new one in each, and these are equal.
    """
    literal = {name for name, source in column.bindings if isinstance(source, str)}
    seen = Counter[str]()
    for atom in column.atoms:
        arguments, equal = [*atom.arguments], list[Atom]()
        for at, one in enumerate(arguments if atom.kind == "property" else ()):
            if isinstance(one, Variable) and one.name in literal:
                seen[one.name] += 1
                if (count := seen[one.name]) > 1:
                    arguments[at] = Variable(f"{one.name} {count}")
                    equal.append(Atom("builtin", _EQUAL, (one, arguments[at])))
        yield atom._replace(arguments=tuple(arguments))
        yield from equal


def _given(column: AnswerColumn, values: pa.Table | None) -> Iterator[Solution]:
    """What the variables that are tested may be, by the values of events."""
    assert values is not None, "the values of tested columns are given"
    sources = {name: str(source) for name, source in column.bindings if name in column.tested}
    terms = [literals(values[source].combine_chunks()) for source in sources.values()]
    for row in zip(*terms, strict=True):
        given = {name: term for name, term in zip(sources, row, strict=True) if term is not None}
        if len(given) == len(sources):
            yield given

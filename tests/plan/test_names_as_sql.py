"""SQL over the columns of which names are made finds the events with these names."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.knowledge.events.names import Template, encoded
from cepheid.knowledge.terms import Iri
from cepheid.lang.sql.parser import parse_expression
from cepheid.plan.lifted import Lifted
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.name_lists import LONG, in_list
from cepheid.plan.semantics.names_sql import MOST_PARTS, Names, in_rows

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string()), ("n", pa.int32()), ("x", pa.float64())])
TEMPLATES = [
    "http://x/{a}-{b}",
    "http://x/{a}/{b}",
    "http://x/{a}{b}.",
    "http://x/{n}-{a}",
    "http://x/{a}/{n}",
    "<u:{b}>",
]
texts = st.none() | st.text("a-/% é0", max_size=3)
events = st.lists(st.tuples(texts, texts, st.none() | st.integers(-12, 12)), min_size=1, max_size=8)


def table(rows: list[tuple[str | None, str | None, int | None]]) -> pa.Table:
    columns = [*zip(*rows, strict=True), [None] * len(rows)]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def name(template: str, row: dict[str, object]) -> Iri | None:
    parts = Template(template).whole({})
    if any(is_column and row[text] is None for text, is_column in parts):
        return None
    return Iri("".join(encoded(str(row[text])) if is_column else text for text, is_column in parts))


def holds(sql: str, given_: pa.Table) -> list[bool]:
    lifted = Lifted(sql, parse_expression(sql), pa.bool_())
    return [bool(one) for one in DuckDbEngine().evaluate(given_, bits=[lifted]).masks[0]]


@share(100)
@given(st.sampled_from(TEMPLATES), events, st.data())
def test_among(template: str, rows: list[tuple[str | None, str | None, int | None]], data: st.DataObject) -> None:
    """An event is found exactly if its name is in the list, in whatever ways its columns may give this name."""
    given_ = table(rows)
    named = [name(template, row) for row in given_.to_pylist()]
    known = [one for one in named if one is not None]
    others = st.sampled_from([Iri("http://x/a--a"), Iri("http://x/-"), Iri("http://y/"), Iri("http://x/%2D-a")])
    listed = data.draw(st.lists(st.sampled_from(known) | others if known else others, max_size=4))
    sql = Names(template, SCHEMA, {}).among(listed, "")
    assert holds(sql, given_) == [one in listed for one in named]


@share(50)
@given(events)
def test_equal(rows: list[tuple[str | None, str | None, int | None]]) -> None:
    """The separator says where a column ends, so that columns are compared one by one."""
    given_ = table(rows)
    names = Names("http://x/{a}/{n}", SCHEMA, {})
    named = [name("http://x/{a}/{n}", row) for row in given_.to_pylist()]
    other = given_.slice(0, 1).take(pa.array([0] * len(rows)))
    both = pa.table({**{f: given_[f] for f in SCHEMA.names}, **{f"o_{f}": other[f] for f in SCHEMA.names}})
    sql = names.equal("", names, "o.", {}).replace("o.`", "`o_")
    assert holds(sql, both) == [one is not None and one == named[0] for one in named]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("http://x/{a}-{b}", "names that templates make of several columns are compared"),
        ("http://x/{a}{b}", "names that templates make of several columns are compared"),
        ("http://x/{a}/{a}", "has a column twice"),
        ("http://x/{x}", "the column 'x' of names is neither STRING nor a whole number"),
    ],
)
def test_not_lifted(template: str, reason: str) -> None:
    """The reason says what has no SQL."""
    with pytest.raises(NotLifted, match=reason):
        (names := Names(template, SCHEMA, {})).equal("", names, "o.", {})


@pytest.mark.parametrize("template", ["http://x/{a}", "http://x/{n}", "http://x/{a}/{n}"])
def test_long_lists(template: str) -> None:
    """Lists of any length find the same."""
    rows: list[tuple[str | None, str | None, int | None]] = [("'7'\\", None, 7), ("12", None, 12), (None, None, None)]
    count = 3 * LONG
    made = table([(f"{number}", None, number) for number in range(8, count)] + [rows[0]])
    listed = [one for row in made.to_pylist() if (one := name(template, row)) is not None]
    found = holds(Names(template, SCHEMA, {}).among(listed, ""), table([*rows, ("5", None, 5)]))
    assert found == [True, True, False, False]


def test_too_many_pairs() -> None:
    """Pairs of names of two events that have no lists in common are too many at some point."""
    listed = [partial(in_list, column, of_texts=True) for column in ("a.`a`", "b.`a`")]
    rows = {(str(number), str(number)) for number in range(MOST_PARTS + 1)}
    with pytest.raises(NotLifted, match="more than 1,000 pairs of names make it true"):
        in_rows(listed, rows)
    assert in_rows(listed, {(one, "same") for one, _ in rows}).count(" AND ") == 1

"""Pattern files with an interval pattern: what they mean, how they are written, and problems with their position in the
file.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.intervals.strategies import patterns

from cepheid import IntervalPattern, PatternError, pattern_from_text, pattern_to_document, pattern_to_yaml, read_pattern
from cepheid.lang.documents import located_in_document
from cepheid.lang.intervals.pattern import interval_pattern
from cepheid.plan.intervals.build import check_intervals

CHAIN = """\
name: chain
version: 1.10
taxonomy:
  column: kind
  kinds: {spin: work}
interval: >
  EVENT PAL((heat h overlap work w) before alarm a)
  WHERE h.machine = w.machine
  WITHIN 2 hours
"""


def test_a_file(tmp_path: Path) -> None:
    """The file gives the pattern of its query, with the name, the version and the types."""
    file = tmp_path / "chain.yaml"
    file.write_text(CHAIN)
    query = "EVENT PAL((heat h overlap work w) before alarm a) WHERE h.machine = w.machine WITHIN 2 hours"
    pattern = read_pattern(file)
    assert isinstance(pattern, IntervalPattern)
    assert pattern.version == "1.10"
    expected = interval_pattern(query).named("chain").taxonomy("kind", {"spin": "work"})
    assert pattern_to_document(pattern) == {"name": "chain", "version": "1.10"} | pattern_to_document(expected)
    assert pattern_from_text("interval: EVENT PAL(A a)") == interval_pattern("EVENT PAL(A a)")


@given(pattern=patterns(), typed=st.booleans())
def test_writing_inverts_reading(pattern: IntervalPattern, typed: bool) -> None:  # noqa: FBT001
    """A pattern written as a document is read as the same pattern."""
    known = pattern.taxonomy("of: it", {"A": ["B", "C"]}) if typed else pattern
    known = known.named("one").with_parameters(n=1, text="it's")
    assert pattern_from_text(pattern_to_yaml(known)) == known


def test_conditions_of_python_can_be_written() -> None:
    """Conditions with comments and blanks around them, in several lines, or with columns named like clauses can be
    written.
    """
    pattern = (
        IntervalPattern.pal(a="A", b="B").where(" a.x = 1 -- one\n").where("a.order < b.within\n AND b.`where` > 1")
    )
    assert pattern.condition == "(a.x = 1) AND (a.order < b.within\n AND b.`where` > 1)"
    alone = (
        IntervalPattern.pal(a="A").where("a.order = 1").without("d", "D", ordered="end(a) < start(d)", where="d.n = 1 ")
    )
    for one in (pattern, alone):
        assert pattern_from_text(pattern_to_yaml(one)) == one
    with pytest.raises(PatternError, match=r"a condition is SQL text, as in 'a\.user = b\.user', got int: 3"):
        alone.where(3)  # type: ignore[arg-type]


def test_problems_of_the_structure() -> None:
    """Unknown keys are reported with the known ones; the query must be text, and the taxonomy valid."""
    with pytest.raises(PatternError) as raised:
        pattern_from_text("nam: x\ninterval: [a]\n", source="x.yaml")
    assert str(raised.value) == (
        "a pattern has no key 'nam' (x.yaml, line 1, column 1)\n  nam: x\n  ^^^\n"
        "Did you mean 'name'? Known here: name, version, parameters, taxonomy, knowledge, mapping, interval\n"
        "'interval' must be a query such as 'EVENT PAL(A a overlap B b) WITHIN 10 min', got [\"a\"]"
        " (x.yaml, line 2, column 11)\n  interval: [a]\n            ^"
    )
    with pytest.raises(PatternError, match="types cannot be kinds of each other in a circle"):
        pattern_from_text("taxonomy: {column: kind, kinds: {a: b, b: a}}\ninterval: EVENT PAL(a)")


def test_a_key_hides_no_problem_of_the_query() -> None:
    """All problems are reported, those of the query with their position in it."""
    with pytest.raises(PatternError) as raised:
        pattern_from_text("interval: EVENT PAL(A a befor B b) WITHIN 3 houers\ntyp: kind\n", source="x.yaml")
    assert [str(problem).split("\n")[0].partition(". Write")[0] for problem in raised.value.problems] == [
        "no relation is named 'befor' (x.yaml, line 1, column 25)",
        "not a length of time: '3 houers'",
        "a pattern has no key 'typ' (x.yaml, line 2, column 1)",
    ]


def test_problems_of_the_query_have_their_place_in_the_file() -> None:
    """A problem has the line and column of the word in the file."""
    with pytest.raises(PatternError) as raised:
        pattern_from_text(CHAIN.replace("overlap", "overlop"), source="chain.yaml")
    assert str(raised.value).startswith(
        "no relation is named 'overlop' (chain.yaml, line 7, column 21)\n"
        "    EVENT PAL((heat h overlop work w) before alarm a)\n                      ^^^^^^^\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("w.machine", "x.machine", "no event has the variable 'x' (chain.yaml, where, line 8, column 21)"),
        ("WITHIN", "RELATE h before x WITHIN", "no event has the variable 'x' (chain.yaml, relate, line 9, column 3)"),
        ("alarm a", "alarm h", "2 events have the variable 'h' (chain.yaml, EVENT, line 7, column 3)"),
        ("alarm a", "alrm a", "no type 'alrm' in the taxonomy (chain.yaml, event 'a', line 7, column 3)"),
    ],
)
def test_what_is_found_later_has_its_place_too(before: str, after: str, place: str) -> None:
    """Problems found when the plan is built have a position: the word in a condition, the beginning of any other
    clause.
    """
    kinds = CHAIN.replace("{spin: work}", "{spin: work, heat: [], alarm: []}")
    text = kinds.replace(before, after)
    pattern = pattern_from_text(text)
    assert isinstance(pattern, IntervalPattern)
    problem = check_intervals(pattern)[0]
    assert str(located_in_document(problem, text, source="chain.yaml")).startswith(place)

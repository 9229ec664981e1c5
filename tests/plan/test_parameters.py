"""Parameters in a plan: the SQL that hosts receive, and unknown, missing and unused names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from cepheid.errors import PatternError
from cepheid.lang.documents import pattern_from_text
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.build import check_pattern
from cepheid.plan.stages.explain import explain_plan
from cepheid.plan.stages.plan import Plan

BuildPlan = Callable[..., Plan]
GIVE = "Give it: with_parameters({0}=…), --parameter {0}=… on the command line, or a value in the pattern file."


def test_hosts_get_literals(plan: BuildPlan) -> None:
    """In the user's own text, only the names are replaced: in lifted columns, scripts, untils and measures."""
    pattern = (
        Pattern.begin("one")
        .where("s LIKE  $like AND n>-$n -- $no")
        .next("two")
        .where("x*$f > one.x")
        .one_or_more()
        .until("last(two.n, $back) = n AND d < $d")
        .with_parameters(like="it's %", n=-1, f=0.5, back=1, d=date(2026, 1, 31))
    )
    built = plan(pattern, measures={"m": "sum(two.n + $n) * $n", "k": "$f"})
    assert [bit.sql for bit in built.bits] == [r"s LIKE  'it\'s %' AND n>-(-1)", "d < (DATE '2026-01-31')"]
    assert [value.sql for value in built.values] == ["x*(0.5D)", "x", "(n)", "n + (-1)"]
    assert built.measures is not None
    assert [measure.sql for measure in built.measures] == ["_slot0 * (-1)", "(0.5D)"]
    assert "last(two.((n)), 1)" in explain_plan(built)


def test_unknown_missing_and_unused_parameters_are_reported_at_once(plan: BuildPlan) -> None:
    """Each is reported with its first position and what to write; a name in quotes is not a parameter."""
    pattern = pattern_from_text(
        """
parameters: {limit: 1, least: , spare: 2, quoted: 3}
stages:
- begin: one
  where: n > $limt AND n > $least
- next: two
  where: [n < $least AND n < $limt, s = '$quoted']
"""
    )
    expected = [
        (
            "no parameter is named 'limt' (stage 'one', where, column 5)\n  n > $limt AND n > $least\n      ^^^^^\n"
            + GIVE.format("limt")
            + " Did you mean 'limit'?"
        ),
        (
            "the parameter 'least' has no value (stage 'one', where, column 19)\n  n > $limt AND n > $least\n"
            "                    ^^^^^^\n" + GIVE.format("least")
        ),
        (
            "the parameter 'limit' is not used: no condition, measure, length or count has $limit (parameter 'limit')\n"
            "Did you mean 'limt'?"
        ),
        (
            "the parameter 'spare' is not used: no condition, measure, length or count has $spare (parameter 'spare')\n"
            "Known here: least, limt"
        ),
        (
            "the parameter 'quoted' is not used: no condition, measure, length or count has $quoted "
            "(parameter 'quoted')\n"
            "Known here: least, limt"
        ),
    ]
    with pytest.raises(PatternError) as error:
        plan(pattern)
    assert [str(problem) for problem in error.value.problems] == expected
    assert [str(problem) for problem in check_pattern(pattern)] == expected


def test_parameters_of_measures_count_as_used() -> None:
    """A parameter may be used in measures alone, if measures are given."""
    pattern = Pattern.begin("one").with_parameters(k=1)
    assert check_pattern(pattern, {"m": "one.n * $k"}) == []
    (unused,) = check_pattern(pattern)
    assert unused.hint == "Nothing in the pattern is a parameter: leave it out."


def test_a_text_that_is_no_sql_uses_its_parameters() -> None:
    """If a text cannot be parsed, only that is reported; the parameters in it are not reported as unused."""
    (problem,) = check_pattern(Pattern.begin("one").where("n > $k AND s = 'x").with_parameters(k=1))
    assert problem.message == "a quote or comment is not closed"


def test_other_problems_keep_their_places(plan: BuildPlan) -> None:
    """Spans refer to the text that was written, whatever the lengths of the values."""
    pattern = Pattern.begin("one").where("n > $k AND prise > $k").with_parameters(k=123456789)
    with pytest.raises(PatternError, match=r"no column named 'prise' \(stage 'one', where, column 12\)"):
        plan(pattern)


def test_the_case_of_names_counts(plan: BuildPlan) -> None:
    """A parameter written in another case is reported, once."""
    pattern = Pattern.begin("one").where("n > $Limit AND n > $Limit").with_parameters(limit=1)
    with pytest.raises(PatternError) as error:
        plan(pattern)
    assert str(error.value) == (
        "no parameter is named 'Limit' (stage 'one', where, column 5)\n  n > $Limit AND n > $Limit\n      ^^^^^^\n"
        "Names are case-sensitive, and 'limit' is there. Write $limit, or name it 'Limit'."
    )

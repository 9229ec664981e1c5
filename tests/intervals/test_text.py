"""The query text of interval patterns: its meaning, how it is printed, and errors with their positions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.intervals.strategies import patterns

from cepheid.errors import PatternError
from cepheid.lang.consistency import Consistency
from cepheid.lang.intervals.grammar import CLAUSES, quoted
from cepheid.lang.intervals.pattern import IntervalPattern, interval_pattern
from cepheid.lang.intervals.printer import interval_text
from cepheid.lang.intervals.values import Relation, Scope


def test_the_papers_query() -> None:
    """The paper's query gives the same pattern as the calls."""
    text = "EVENT PAL((A a overlap B b) (!D d) before C c) WHERE a.user = b.user WITHIN 10 min REALTIME 1"
    pattern = (
        IntervalPattern.pal(a="A", b="B", c="C")
        .nested("(a overlap b) before c")
        .without("d", "D", between=(["a", "b"], "c"))
        .where("a.user = b.user")
        .within("10 minutes")
        .emitting("realtime")
    )
    assert IntervalPattern.of(text) == interval_pattern(text) == pattern


def test_types_alone_are_their_own_variables() -> None:
    """An event without a variable is named by its type."""
    pattern = interval_pattern("EVENT PAL((A overlap B) (!D) before C)")
    assert pattern.variables == ("A", "B", "C", "D")
    assert pattern.negations[0].left == ("A", "B")


def test_a_negation_in_a_list_stands_between_what_is_before_and_after() -> None:
    """In SEQ the scope of a negation is seq_between all events before and all events after it."""
    negation = interval_pattern("EVENT SEQ(A a, !D d, B b, C c)").negations[0]
    assert (negation.scope, negation.left, negation.right) == (Scope.SEQ_BETWEEN, ("a",), ("b", "c"))


def test_scopes_orders_and_conditions_of_negations() -> None:
    """A negation may have a scope, an order of endpoints and a condition of its own."""
    pattern = interval_pattern(
        "EVENT PAL(A a, (!D d gap WHERE d.n > (a.n)), B b)"
        " WITHOUT (X x ORDER end(a) <= start(x), end(x) < start(b) WHERE x.n = a.n) WHERE a.n > 1"
    )
    gap, ordered = pattern.negations
    assert (gap.scope, gap.condition) == (Scope.GAP, "d.n > (a.n)")
    assert ordered.scope is None
    assert [str(comparison) for comparison in ordered.order] == ["end(a) <= start(x)", "end(x) < start(b)"]
    assert (ordered.condition, pattern.condition) == ("x.n = a.n", "a.n > 1")


def test_standard_names_of_relations() -> None:
    """The standard names mean the paper's relations: `overlaps` is `overlap`, and so on."""
    pattern = interval_pattern("EVENT PAL(A a, B b) RELATE a overlaps | meets | contains b")
    assert pattern.pairs[0].relations == (Relation.OVERLAP, Relation.MEET, Relation.CONTAIN)


def test_clauses_in_any_order_and_units_of_the_paper() -> None:
    """Clauses may stand in any order; `10 min` is ten minutes."""
    pattern = interval_pattern("EVENT PAL(A a) REALTIME 0 WITHIN 10 min 5 sec WHERE a.n = 1")
    assert pattern.window == timedelta(minutes=10, seconds=5)
    assert pattern.consistency is Consistency.CONSERVATIVE


def test_the_words_of_the_paper() -> None:
    """A relation may be in parentheses, and `Real-time Factor` is REALTIME."""
    written = "EVENT PAL((A (overlap) B) (before[0, 0, 0, 0, 0]) C) WHERE A.n = 1 WITHIN 10 min Real-time Factor 1"
    usual = "EVENT PAL((A overlap B) before[0, 0, 0, 0, 0] C) WHERE A.n = 1 WITHIN 10 min REALTIME 1"
    assert interval_pattern(written) == interval_pattern(usual)


def test_negations_at_the_ends_of_a_list() -> None:
    """Before the first event and after the last one a part is empty; without a scope it is then `gap`, in a SEQ
    `seq_between`.
    """
    first, last = interval_pattern("EVENT PAL(!D d, (A a overlap B b), (!D e start_between)) WITHIN 1 h").negations
    assert (first.scope, first.left, first.right) == (Scope.GAP, (), ("a", "b"))
    assert (last.scope, last.left, last.right) == (Scope.START_BETWEEN, ("a", "b"), ())
    assert interval_pattern("EVENT SEQ(A a, !D d) WITHIN 1 h").negations[0].scope is Scope.SEQ_BETWEEN
    called = IntervalPattern.pal(a="A").without("d", "D", between=("a", ())).within("1 h")
    assert called == interval_pattern("EVENT PAL(A a, !D d) WITHIN 1 h")


@settings(max_examples=150, deadline=None)
@given(pattern=patterns())
def test_the_printer_inverts_the_parser(pattern: IntervalPattern) -> None:
    """A pattern printed and parsed is the same pattern; so it is when written as a document."""
    assert interval_pattern(interval_text(pattern)) == pattern


def test_a_window_of_starts() -> None:
    """`WITHIN … OF STARTS` bounds the starts of a match; another word is refused."""
    pattern = interval_pattern("EVENT PAL(A a, B b) WITHIN 10 min OF STARTS REALTIME 1")
    assert pattern == IntervalPattern.pal(a="A", b="B").within("10 minutes", of="starts").emitting("realtime")
    assert interval_text(pattern).splitlines()[1:] == ["WITHIN 10 minutes OF STARTS", "REALTIME 1"]
    with pytest.raises(PatternError, match="no part of a match that WITHIN bounds is named 'ends'"):
        interval_pattern("EVENT PAL(A a, B b) WITHIN 10 min OF ends")
    with pytest.raises(PatternError, match="within bounds the length of the 'match' or of the 'starts', got of='ends'"):
        pattern.within("10 minutes", of="ends")


WORDS = ["a b", "within", "überlang", "1st", "overlap", "a`b", "end", "gap", "PAL", *CLAUSES, *map(str.lower, CLAUSES)]


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(WORDS) | st.from_regex(r"[A-Za-z_]\w*", fullmatch=True) | st.text())
def test_any_name_can_be_quoted(name: str) -> None:
    """Names that are words of the language, or not words at all, are written in back-quotes; in conditions, words of
    the language need none.
    """
    written = name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else quoted(name)
    pattern = (
        IntervalPattern.pal(**{name: name, "z": "Z"})
        .relate(name, "before", "z")
        .ordered(f"end({quoted(name)}) < start(z)")
        .without("d", name, between=(name, "z"), where=f"{written}.n = d.n AND {written}.n > 1")
        .where(f"{written}.n = z.{written} OR {written}.u IS NULL")
    )
    assert interval_pattern(interval_text(pattern)) == pattern


LENGTH = (
    "not a length of time: {!r}. Write a whole number and a unit, as in '12 hours'; units: microseconds (us, µs), "
    "milliseconds (ms), seconds (s, sec), minutes (min), hours (h), days (d), weeks"
)
ERRORS = {
    "EVENT PAL((A overlap B) befor C)": (
        "no relation is named 'befor' (interval pattern, column 25)\n"
        "  EVENT PAL((A overlap B) befor C)\n"
        "                          ^^^^^\n"
        "Did you mean 'before'?"
    ),
    "EVENT PAL(A overlap[1, 2] B)": (
        "five counts are expected, found 2 (interval pattern, column 20)\n"
        "  EVENT PAL(A overlap[1, 2] B)\n"
        "                     ^^^^^^\n"
        "They are [contain, finished by, meet, overlap, start]."
    ),
    "EVENT PAL(A a, (!D d gapp), B b)": (
        "no scope of a negation is named 'gapp' (interval pattern, column 22)\n"
        "  EVENT PAL(A a, (!D d gapp), B b)\n"
        "                       ^^^^\n"
        "Did you mean 'gap'?"
    ),
    "EVENT PAL((A overlap B) (!D))": (
        "a relation after the negation is expected (after the last event it follows a comma: A a, !D d), found ')' "
        "(interval pattern, column 29)\n"
        "  EVENT PAL((A overlap B) (!D))\n"
        "                              ^"
    ),
    "EVENT ANY(A)": ("PAL or SEQ is expected, found 'ANY' (interval pattern, column 7)\n  EVENT ANY(A)\n        ^^^"),
    "EVENT PAL((A before B), (C before D))": (
        "a pattern has one hierarchy (interval pattern, column 25)\n"
        "  EVENT PAL((A before B), (C before D))\n"
        "                          ^^^^^^^^^^^^\n"
        "Write the other relations after RELATE."
    ),
    "EVENT PAL(A a) WITHIN 3 days SOON 1": (
        "one of TREE, RELATE, ORDER, WITHOUT, WHERE, WITHIN, REALTIME, CONSISTENCY or the end is expected, "
        "found 'SOON' (interval pattern, column 30)\n"
        "  EVENT PAL(A a) WITHIN 3 days SOON 1\n"
        "                               ^^^^"
    ),
    "EVENT PAL(A a) WITHIN 3 fortnights": (
        f"{LENGTH.format('3 fortnights')} (interval pattern, column 23)\n"
        "  EVENT PAL(A a) WITHIN 3 fortnights\n"
        "                        ^^^^^^^^^^^^"
    ),
    "EVENT PAL(A a) WHERE a.n = 1 WHERE a.n = 2": (
        "WHERE is given a second time (interval pattern, column 30)\n"
        "  EVENT PAL(A a) WHERE a.n = 1 WHERE a.n = 2\n"
        "                               ^^^^^"
    ),
    "EVENT PAL(A a) CONSISTENCY lazy": (
        "no consistency is named 'lazy' (interval pattern, column 28)\n"
        "  EVENT PAL(A a) CONSISTENCY lazy\n"
        "                             ^^^^\n"
        "Known here: conservative, earliest, realtime"
    ),
    "EVENT PAL(A a) REALTIME 0 CONSISTENCY realtime": (
        "CONSISTENCY realtime contradicts REALTIME 0 (interval pattern, column 27)\n"
        "  EVENT PAL(A a) REALTIME 0 CONSISTENCY realtime\n"
        "                            ^^^^^^^^^^^^^^^^^^^^\n"
        "Leave one of them out."
    ),
    "EVENT PAL(A a) CONSISTENCY earliest REALTIME 1": (
        "REALTIME 1 contradicts CONSISTENCY earliest (interval pattern, column 37)\n"
        "  EVENT PAL(A a) CONSISTENCY earliest REALTIME 1\n"
        "                                      ^^^^^^^^^^\n"
        "Leave one of them out."
    ),
    "EVENT PAL(A befor (B meet C))": (
        "no relation is named 'befor' (interval pattern, column 13)\n"
        "  EVENT PAL(A befor (B meet C))\n"
        "              ^^^^^\n"
        "Did you mean 'before'?"
    ),
    "EVENT PAL(A a) REALTIME 2": (
        "0 (nothing is retracted) or 1 (at once) is expected, found '2' (interval pattern, column 25)\n"
        "  EVENT PAL(A a) REALTIME 2\n"
        "                          ^"
    ),
    "EVENT PAL(A a, B b) ORDER start(a)": (
        "<, <=, =, >= or > is expected, but the text ends here (interval pattern, column 34)\n"
        "  EVENT PAL(A a, B b) ORDER start(a)\n"
        "                                   ^"
    ),
}


def test_consistencies_that_agree() -> None:
    """REALTIME and CONSISTENCY may stand together if they agree; REALTIME 0, no retraction, agrees with two of the
    consistencies.
    """
    for first, second in (("REALTIME 0", "CONSISTENCY earliest"), ("CONSISTENCY earliest", "REALTIME 0")):
        assert interval_pattern(f"EVENT PAL(A a) {first} {second}").consistency is Consistency.EARLIEST
    assert interval_pattern("EVENT PAL(A a) REALTIME 1 CONSISTENCY realtime").consistency is Consistency.REALTIME


@pytest.mark.parametrize("text", ERRORS)
def test_errors_have_their_place(text: str) -> None:
    """The message says what is wrong, where, and what would be right."""
    with pytest.raises(PatternError) as raised:
        interval_pattern(text)
    assert str(raised.value) == ERRORS[text]


def test_all_problems_come_at_once() -> None:
    """A misspelled word, or one in the wrong place, does not hide the other problems."""
    text = (
        "EVENT PAL((A befor B) overlap[1] C, (!D d gapp), E meet F) TREE A meet C WITHIN 3 houers"
        " CONSISTENCY realtme WITHIN 3 s ORDER start(A"
    )
    with pytest.raises(PatternError) as raised:
        interval_pattern(text)
    assert [problem.message for problem in raised.value.problems] == [
        "no relation is named 'befor'",
        "five counts are expected, found 1",
        "no scope of a negation is named 'gapp'",
        "a pattern has one hierarchy",
        "a pattern has one hierarchy",
        LENGTH.format("3 houers"),
        "no consistency is named 'realtme'",
        "WITHIN is given a second time",
        ") is expected, but the text ends here",
    ]


def test_a_condition_that_cannot_be_printed() -> None:
    """A condition with a bare word that begins a clause would end there when parsed; the calls put such words in
    back-quotes.
    """
    pattern = IntervalPattern.pal(a="A").where("a.n > 1 AND within")
    assert pattern.condition == "a.n > 1 AND `within`"
    with pytest.raises(PatternError, match=r"has the word WITHIN, which begins a clause of the query text"):
        interval_text(replace(pattern, condition="a.n > 1 AND within"))


def test_calls_refuse_what_no_later_call_makes_right() -> None:
    """A second tree, unknown names, and negations without a scope or an order are refused."""
    pattern = IntervalPattern.pal(a="A", b="B")
    with pytest.raises(PatternError, match="a pattern has one hierarchy"):
        pattern.nested("a before b").nested("b before a")
    with pytest.raises(PatternError, match=r"no relation is named 'overlapping'\. Did you mean 'overlap'"):
        pattern.relate("a", "overlapping", "b")
    with pytest.raises(PatternError, match="say where the negated event may not lie"):
        pattern.without("d", "D")
    with pytest.raises(PatternError, match="no consistency is named 'never'"):
        pattern.emitting("never")

"""Expressions in Python, as text and in pattern files are the same values; invalid ones are reported with their
position.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from cepheid import (
    Occurrence,
    OccurrencePattern,
    PatternError,
    Policy,
    event,
    pattern_from_text,
    pattern_to_document,
    pattern_to_yaml,
)
from cepheid.lang.document.problems import pattern_schema, schema_of
from cepheid.lang.intervals.document import SCHEMA as INTERVAL_SCHEMA
from cepheid.lang.occurrences.document import SCHEMA
from cepheid.lang.occurrences.printer import pattern_text
from occurrences.strategies import patterns

A, B, C = event("A"), event("B"), event("C")


@settings(max_examples=300)
@given(patterns())
def test_printed_text_reads_as_the_same(pattern: OccurrencePattern) -> None:
    """The printer inverts the parser, for every pattern that can be made in Python."""
    assert OccurrencePattern.of(pattern_text(pattern)) == pattern


@settings(max_examples=100)
@given(patterns())
def test_documents_read_as_the_same(pattern: OccurrencePattern) -> None:
    """A pattern written as a file, in YAML or JSON, is read as the same pattern."""
    whole = pattern.named("p").taxonomy("type", {"A": "B"}).policy("recent").with_parameters(n=1, text="it's")
    document = pattern_to_document(whole)
    Draft202012Validator(schema_of(SCHEMA)).validate(document)
    assert pattern_from_text(pattern_to_yaml(whole)) == whole
    assert pattern_from_text(json.dumps(document)) == whole


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("A", A),
        ("(A; B) - C", (A >> B) - C),
        ("A; B; C", (A >> B) >> C),
        ("A ∧ (B ∨ C)", A & (B | C)),  # noqa: RUF001 - the signs of logic
        ("(A − B)", A - B),  # noqa: RUF001 - the true minus sign
        ("(?a:A; ?b:A)_120s[ ?a.u = ?b.u ]", (A.named("a") >> A.named("b")).within("2 minutes").where("a.u = b.u")),
        ("(A)_{1 minute 30 seconds}", A.within("90 seconds")),
        ("A + 5min; B", A.plus("5 minutes") >> B),
        ("A + 1h30min", A.plus("90 minutes")),
        ("A[x = ']'] -[start(?b) < end(?a)] ?b:B", A.where("x = ']'").minus_if(B.named("b"), "start(b) < end(a)")),
        ("`A b`; `c``d`", event("A b") >> event("c`d")),
        ("?w:((?a:A)_1s)", A.named("a").within("1 second").named("w")),
        ("A[m['k'] = 1]", A.where("m['k'] = 1")),
    ],
)
def test_text_and_python(text: str, expression: Occurrence) -> None:
    """The notation of the paper, with its signs or in ASCII, gives the same expression as Python."""
    assert OccurrencePattern.of(text).expression == expression


def test_declarations() -> None:
    """Restricted types are declared before the expression and may be based on other restricted types."""
    read = OccurrencePattern.of("Big = ?p:Payment[?p.amount > 10]\nHuge = Big[amount > 1000] Huge; Big")
    made = OccurrencePattern.of(event("Huge") >> event("Big"))
    assert read == made.restrict("Big", "Payment", "p.amount > 10", variable="p").restrict(
        "Huge", "Big", "amount > 1000"
    )


def test_question_marks_of_variables() -> None:
    """A `?` before a variable in a condition is removed; within string literals it stays."""
    assert A.where("?a.x = '?b' AND start(?a) < ?`b c`.t") == A.where("a.x = '?b' AND start(a) < `b c`.t")
    assert A.where("'open") == A.where("'open")


REFUSED = [
    ("(A; B - C)", "different operators need parentheses, which say what belongs together (column 7)"),
    ("A; ", "a type, '(' or '?variable:' is expected, but the text ends here (column 2)"),
    ("", "a type, '(' or '?variable:' is expected, but the text ends here (column 1)"),
    ("(A)_120", "a length of time with its unit is expected, as in _120s, found '1' (column 5)"),
    ("A + B", "a length of time with its unit is expected, as in + 10s, found 'B' (column 5)"),
    ("A + 3 fortnights", "not a length of time: '3 fortnights'"),
    ("(A; B", "')' is expected, but the text ends here (column 5)"),
    ("A[x", "this bracket is not closed (column 2)"),
    ("A[ ]", "a condition is SQL text, as in 'a.user = b.user', got str: ' ' (column 2)"),
    (
        "A befor B",
        "no operator is named 'befor' (column 3)\n  A befor B\n    ^^^^^\nWrite A; B for A before B, A & B for",
    ),
    ("A B", "an operator or the end is expected, found 'B' (column 3)"),
    ("T = A", "a condition in brackets is expected, as in T = ?v: A [ v.amount > 10 ]"),
    ("T = [x] A", "a type is expected, found '[' (column 5)"),
    ("?a:?b:C", "a type or '(' is expected: an occurrence has one variable, found '?' (column 4)"),
    ("(" * 60 + "A" + ")" * 60, "parentheses are nested more than 50 levels deep (column 51)"),
    (";".join("A" * 300), "operators are nested more than 200 levels deep (column 1)"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_expression(text: str, message: str) -> None:
    """Each message says what is expected, and where."""
    with pytest.raises(PatternError) as raised:
        OccurrencePattern.of(text)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("A; B - C", "Write (A; B) - C or A; (B - C), whichever is meant."),
        ("A | B; C", "Write (A | B); C or A | (B; C), whichever is meant."),
        ("A ∧ B −[x] C", "Write (A ∧ B) − C or A ∧ (B − C), whichever is meant."),  # noqa: RUF001
    ],
)
def test_which_parentheses(text: str, hint: str) -> None:
    """The hint shows the operators that were written."""
    with pytest.raises(PatternError) as raised:
        OccurrencePattern.of(text)
    assert [problem.hint for problem in raised.value.problems] == [hint]


def test_all_problems_of_a_text_at_once() -> None:
    """Unknown operators, unknown units, missing parentheses and wrong conditions are reported together."""
    with pytest.raises(PatternError) as raised:
        OccurrencePattern.of("T = A[] T befor B + 3 houers; (C)_{2 dys} | D)")
    assert [problem.message.partition(": ")[0] for problem in raised.value.problems] == [
        "a condition is SQL text, as in 'a.user = b.user', got str",
        "no operator is named 'befor'",
        "not a length of time",
        "not a length of time",
        "different operators need parentheses, which say what belongs together",
        "an operator or the end is expected, found ')'",
    ]


def test_the_caret() -> None:
    """The caret stands under the mistake, on its line."""
    with pytest.raises(PatternError, match=re.escape("(line 2, column 4)\n  A; )\n     ^")):
        OccurrencePattern.of("T = A[x]\nA; )")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: A >> "B", ">> takes an expression such as event('a'), got str: 'B'"),
        (lambda: A.minus_if(None, "x"), "minus_if takes an expression such as event('a'), got None"),  # type: ignore[arg-type]
        (lambda: event(""), "a type's name must be text that is not empty, got str: ''"),
        (lambda: A.named("1a"), "does not begin with a digit, got str: '1a'"),
        (lambda: A.named("a").named("b"), "named('b'): this is named 'a' already; one name is enough"),
        (lambda: A.where(3), "a condition is SQL text, as in 'a.user = b.user', got int: 3"),  # type: ignore[arg-type]
        (lambda: A.within("soon"), "not a length of time: 'soon'"),
        (lambda: A.plus(timedelta(seconds=-1)), "a length of time must not be negative"),
        (lambda: OccurrencePattern.of(3), "an expression such as event('a') >> event('b'), or its text, is expected"),  # type: ignore[arg-type]
        (lambda: OccurrencePattern.of("A").policy("newest"), "policy: 'newest' is not known; allowed are 'unr"),
        (lambda: OccurrencePattern.of("A").restrict("T", "", "x"), "a type's name must be text that is not empty"),
        (lambda: pattern_to_document(OccurrencePattern.of("A")), "must name the column of the types (taxonomy)"),
    ],
)
def test_wrong_arguments(make: Any, message: str) -> None:
    """Arguments that no later call could make valid are refused at once."""
    with pytest.raises(PatternError, match=re.escape(message)):
        make()


def test_policies_by_name() -> None:
    """A policy is given by its name or as a `Policy`."""
    pattern = OccurrencePattern.of("A")
    assert pattern.policy("recent") == pattern.policy(Policy.RECENT)
    assert pattern.chosen is None


def test_problems_of_documents() -> None:
    """All problems are reported together, each with its position in the file."""
    text = """
occurrence: A; )
taxonomy: {column: type, kinds: {A: A}}
types:
  T: "?p: A [p.x"
"""
    with pytest.raises(PatternError) as raised:
        pattern_from_text(text, source="shop.yaml")
    assert [str(problem).split("\n")[0] for problem in raised.value.problems] == [
        "a type, '(' or '?variable:' is expected, found ')' (shop.yaml, line 2, column 16)",
        "types cannot be kinds of each other in a circle: 'A' → 'A' (shop.yaml, line 3, column 33)",
        "this bracket is not closed (shop.yaml, line 5, column 13)",
    ]
    with pytest.raises(PatternError) as raised:
        pattern_from_text("occurrence: A\npolicy: newest\nskip: x", source="shop.yaml")
    assert {problem.message for problem in raised.value.problems} == {
        "'policy' must be unrestricted, recent, snoop_recent, chronicle, continuous or cumulative, got 'newest'",
        "a pattern has no key 'skip'",
        "a pattern needs the key 'taxonomy'",
    }


def test_a_key_hides_no_other_problem() -> None:
    """An unknown key, or one of the wrong type, does not hide the other problems; missing keys are reported last."""
    text = """
occurrence: A befor B
skip: x
taxonomy: {colum: type}
types: {T: "A[", U: 3}
parameters: {n: {date: soon}}
"""
    with pytest.raises(PatternError) as raised:
        pattern_from_text(text)
    assert [problem.message.partition(":")[0] for problem in raised.value.problems] == [
        "no operator is named 'befor'",
        "a pattern has no key 'skip'",
        "'taxonomy' has no key 'colum'",
        "'taxonomy' needs the key 'column'",
        "this bracket is not closed",
        "'U' must be text such as 'Payment [amount > 1000]', got 3",
        "not a date",
    ]


@pytest.mark.parametrize("keys", [("occurrence", "interval"), ("stages", "interval"), ("stages", "occurrence")])
def test_a_file_is_of_one_kind(keys: tuple[str, str]) -> None:
    """A file that mixes keys of several kinds of patterns gives one message, whatever other keys it has."""
    one, other = keys
    with pytest.raises(PatternError) as raised:
        pattern_from_text(f"{other}: A\n{one}: B\nskp: 3", source="x.yaml")
    assert str(raised.value).startswith(
        f"a pattern file has one of the keys stages, occurrence, interval; this has {one} and {other} (x.yaml, "
    )


@pytest.mark.parametrize("name", [SCHEMA, INTERVAL_SCHEMA])
def test_what_schemas_have_together(name: str) -> None:
    """Files of all kinds declare types and parameters in the same way."""
    ours, theirs = schema_of(name)["$defs"], pattern_schema()["$defs"]
    assert all(ours[part] == theirs[part] for part in ("taxonomy", "type", "parameter"))

"""Built-ins at the edges of their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cepheid.errors import KnowledgeError
from cepheid.knowledge.knowledge import Knowledge

NOTHING = Knowledge.read("")

HOLD = """
add(0.3, 0.1, 0.2)
divide(?q, 1, 3) ^ greaterThan(?q, 0.333333333333333333) ^ lessThan(?q, 0.333333333333333334)
integerDivide(-3, -7, 2)
integerDivide(3, -7, -2)
integerDivide(2, 5.5, 2)
mod(-1, -7, 3)
mod(1, 7, -3)
pow(1024, 2, 10)
round(-2, -2.5)
round(3, 2.5)
roundHalfToEven(2, 2.5)
roundHalfToEven(2.34, 2.345, 2)
roundHalfToEven(1200, 1234, -2)
abs(7, -7)
ceiling(-2, -2.5)
floor(-3, -2.5)
unaryMinus(-0.5, 0.5)
sin(0, 0)
cos(1, 0)
equal("1"^^xsd:boolean, true)
equal("7"^^xsd:long, 7.0)
equal("INF"^^xsd:double, "INF"^^xsd:double)
notEqual("NaN"^^xsd:double, "NaN"^^xsd:double)
lessThan("Z", "a")
stringConcat("abc", "a", "b", "c")
substring("12", "12345", 0, 3)
substring("234", "12345", 1.5, 2.6)
substring("", "12345", 9)
stringLength(6, "𝄞 clef")
normalizeSpace("two words", "  two \t words  ")
upperCase("STRASSE", "Straße")
lowerCase("čtvrtek", "ČTVRTEK")
translate("BAr", "bar", "abc", "AB")
substringBefore("tat", "tattoo", "to")
substringAfter("too", "tattoo", "tat")
substringAfter("tattoo", "tattoo", "")
substringBefore("", "tattoo", "")
matches("a book", "bo+k")
matches("Book", "bOOK", "i")
matches("a b", "a\\\\sb")
matches("a#b", "a # b", "x")
matches("a\\rb", "a.b", "s")
replace("a*cada*", "abracadabra", "bra", "*")
replace("b-ra", "b$ra", "\\\\$", "-")
replace("[1=ab][2=]cd", "abcd", "(ab)|(a)", "[1=$1][2=$2]")
stringEqualIgnoreCase("Book", "bOOK")
contains("abc", "")
booleanNot(false, true)
equal("24:00:00"^^xsd:time, "00:00:00"^^xsd:time)
equal("2007-12-31T24:00:00"^^xsd:dateTime, "2008-01-01T00:00:00"^^xsd:dateTime)
date("2008-02-29"^^xsd:date, 2008, 2, 29)
dateTime(?t, 2007, 3, 13, 5, 30, 0, "+01:00") ^ equal(?t, "2007-03-13T04:30:00Z"^^xsd:dateTime)
addDayTimeDurationToTime("00:30:00"^^xsd:time, "23:30:00"^^xsd:time, "PT1H"^^xsd:dayTimeDuration)
subtractDayTimeDurationFromDate("2007-02-28"^^xsd:date, "2007-03-01"^^xsd:date, "PT1H"^^xsd:dayTimeDuration)
addYearMonthDurationToDate("2007-02-28"^^xsd:date, "2007-01-31"^^xsd:date, "P1M"^^xsd:yearMonthDuration)
multiplyYearMonthDuration("P35M"^^xsd:yearMonthDuration, "P14M"^^xsd:yearMonthDuration, 2.5)
multiplyDayTimeDurations("PT90M"^^xsd:dayTimeDuration, "PT1H"^^xsd:dayTimeDuration, 1.5)
subtractDates("P1D"^^xsd:dayTimeDuration, "2008-03-01"^^xsd:date, "2008-02-29"^^xsd:date)
pow(?p, 10, 400) ^ mod(0, ?p, 10) ^ unaryMinus(?n, ?p) ^ mod(-1, ?n, 3)
pow(?p, 10, 400) ^ unaryMinus(?n, ?p) ^ integerDivide(?q, ?n, 10) ^ pow(?r, 10, 399) ^ unaryMinus(?q, ?r)
dayTimeDuration("-P1D"^^xsd:dayTimeDuration, -1, 0, 0, 0)
"""

DO_NOT_HOLD = """
equal("1", 1)
notEqual(10, "10")
equal("a"^^xsd:integer, 1)
lessThan(false, true)
equal("300"^^xsd:byte, 300)
lessThan("NaN"^^xsd:double, 1)
equal("٣"^^xsd:integer, 3)
equal("٣.5"^^xsd:decimal, 3.5)
pow(?p, 10, 5000)
pow(?p, 10, 4299) ^ multiply(?q, ?p, 10)
integerDivide(?q, 1E308, 1E-308)
integerDivide(?q, "INF"^^xsd:double, 2)
mod(?r, "INF"^^xsd:double, 2)
divide(?q, 1, 0)
divide(?q, 1, "0"^^xsd:double)
integerDivide(?q, 1, 0)
mod(?q, 1, 0)
pow(?q, -8, 0.5)
pow(?q, 10, 1000000000)
add(?r, "1", 2)
stringConcat(?r, "a", 1)
matches("a book", "^book")
matches("book", "(")
matches("a\\rb", "a.b")
matches("a", "a#b", "x")
replace(?r, "book", "x*", "-")
replace(?r, "book", "b", "$")
date(?r, 2007, 2, 29)
time(?r, 24, 1, 0)
dateTime(?r, 2007, 1, 1, 0, 0, 0, "+15:00")
equal("2007-03-12T12:00:00"^^xsd:dateTime, "2007-03-12T12:00:00Z"^^xsd:dateTime)
lessThan("P1M"^^xsd:yearMonthDuration, "P40D"^^xsd:dayTimeDuration)
subtractTimes(?r, "12:00:00"^^xsd:time, "11:00:00Z"^^xsd:time)
greaterThan(?never, 3)
addDayTimeDurationToDate(?r, "9999-12-31"^^xsd:date, "P1D"^^xsd:dayTimeDuration)
"""


@pytest.mark.parametrize("text", HOLD.split("\n")[1:-1])
def test_holds(text: str) -> None:
    assert NOTHING.holds(text)


@pytest.mark.filterwarnings("ignore:the filter .* never holds")
@pytest.mark.parametrize("text", DO_NOT_HOLD.split("\n")[1:-1])
def test_does_not_hold(text: str) -> None:
    """What is false, and what is an error: the atom then does not hold."""
    assert not NOTHING.holds(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Book(?c", "',' or ')' is expected, not the end (filter, column 8)"),
        ("Book(?c) shop:Book(?c)", "'∧' or the end is expected, not 'shop:Book' (filter, column 10)"),
        ("shop:Book(?c)", "the prefix 'shop:' is unknown. There are :, ex:, owl:"),
        ("greaterTan(?a, ?b, 3)", "greaterTan has 3 arguments: a class has one, a property two. Built-ins with a name"),
        ("swrlb:tan(?a, ?b)", "there is no built-in 'tan' here"),
        ("pow(?a, 2)", "pow has 2 arguments, and takes 3"),
        ('"Book"(?c)', 'a name is expected, not the text "Book" (filter, column 1)'),
        ("", "a name or <a name> or a text is expected, not the end (filter, column 1)"),
        ("<_:b>(?c)", "this cannot be read (filter, column 1)"),
        ("Book(?c) ∧ §", "this cannot be read (filter, column 12)"),
    ],
)
def test_what_is_no_filter(text: str, message: str) -> None:
    """The message says what is wrong, and where."""
    known = Knowledge.read("", prefixes={"": "http://example.org/", "ex": "http://example.org/x#"})
    with pytest.raises(KnowledgeError) as caught:
        known.holds(text)
    assert message in str(caught.value)


def test_great_integers() -> None:
    """Integers with more digits than Python writes are no values, wherever they come from."""
    known = Knowledge.read(f"<urn:a> <urn:limit> {'9' * 4301} .", prefixes={})
    assert known.holds("<urn:limit>(<urn:a>, ?l)")
    assert not known.holds("<urn:limit>(<urn:a>, ?l) ^ greaterThan(?l, 1)")
    assert not known.holds(f"<urn:limit>(<urn:a>, ?l) ^ equal({'9' * 4301}, 1)")


def test_whole_names() -> None:
    """A name in angle brackets is an IRI, for a class, a property, an individual and a type of literals."""
    known = Knowledge.read('<urn:b> a <http://x/A%20B> ; <http://x/p/q> "1"^^<urn:odd> .', prefixes={})
    assert known.holds('<http://x/A%20B>(<urn:b>) ^ <http://x/p/q>(<urn:b>, "1"^^<urn:odd>)')
    assert not known.holds("<http://x/A%20B>(<urn:c>)")


def test_bindings() -> None:
    """Individuals are bound by whole names or by names with a prefix; a variable that the filter lacks is refused."""
    text = "@prefix x: <http://x/> . x:a a x:Book . <mailto:b@x> a x:Book ."
    known = Knowledge.read(text, prefixes={"x": "http://x/"})
    names = "x:a", "<http://x/a>", "http://x/a", "mailto:b@x", "x:b", "http://x/b"
    assert [known.holds("x:Book(?b)", {"?b": name}) for name in names] == [True] * 4 + [False] * 2
    with pytest.raises(KnowledgeError) as caught:
        known.solutions("x:Book(?book)", ["book"], {"bok": "x:a"})
    assert str(caught.value) == "bindings: the filter has no variable 'bok'\nDid you mean 'book'?"
    with pytest.raises(KnowledgeError, match="the prefix ':' is unknown"):
        known.holds("x:Book(?b)", {"b": "a"})


def test_unknown_variables() -> None:
    with pytest.raises(KnowledgeError, match=r"no class or property atom has 'q', 'r'\. There are x$"):
        NOTHING.solutions("owl:Thing(?x) ^ add(?q, 1, 2)", ["x", "q", "r"])


def test_documents_with_errors() -> None:
    """The message has the line. Files have known endings."""
    with pytest.raises(KnowledgeError, match="line 2"):
        Knowledge.read("<http://x/a> <http://x/b> 1 .\n<http://x/a> <http://x/b> ::: .")


def test_equal_knowledge() -> None:
    """The same documents are equal knowledge, whenever they are read; nodes of two documents are never the same."""
    text = "@prefix : <http://x/> .\n:a :b [ :c 1 ] . _:n :c 2 ."
    one, again = Knowledge.read(text), Knowledge.read(text)
    assert (one, hash(one)) == (again, hash(again))
    assert one != Knowledge.read(text, prefixes={"": "http://x/"})
    assert len(Knowledge.read([text, text]).facts) == len({*Knowledge.read([text, text]).facts}) == 6
    several = Knowledge.read([text, text], prefixes={"": "http://x/"})
    assert several.solutions(":c(?n, 2)", ["n"]) == [("_:k.1",), ("_:k.3",)]


def test_the_same_as_itself() -> None:
    """Whatever is mentioned is the same as itself, also if nothing else is stated of it."""
    known = Knowledge.read("@prefix : <http://x/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . :a owl:sameAs :a .")
    assert known.holds("sameAs(?a, ?a)", {"a": "http://x/a"})
    assert not known.holds("sameAs(?a, ?a)", {"a": "http://x/b"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Knowledge.read("shop.ttl"), "(line 1)\nTo read a file, write Path('shop.ttl')."),
        (lambda: Knowledge.read(None), "source: a text, a Path or several of these are expected, got None"),
        (lambda: Knowledge.read([3]), "source: a text or a Path is expected, got 3"),
        (lambda: Knowledge.read("", prefixes=["x"]), "prefixes: the IRIs of prefixes are expected, as in {"),
        (lambda: Knowledge.read("", prefixes={"x:": "http://x/"}), "a prefix has no colon, as in {'shop'"),
        (lambda: Knowledge.read("", prefixes={"x": 5}), "got 'x': 5"),
        (lambda: NOTHING.holds(None), "filter: a text is expected, as 'Book(?c) ∧ hasPrice(?c, ?p)', got None"),
    ],
)
def test_arguments(make: Callable[[], Any], message: str) -> None:
    """Arguments of other types are refused by name."""
    with pytest.raises(KnowledgeError) as caught:
        make()
    assert message in str(caught.value)

"""All problems of an occurrence pattern are reported together, before any event is read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cepheid import CepheidWarning, OccurrencePattern, PatternError, detect
from cepheid.detect import plan_of
from cepheid.plan.occurrences.build import check_occurrences
from cepheid.plan.occurrences.constants import Kind
from cepheid.plan.occurrences.explain import (
    explain_occurrence_plan,
    explain_occurrences,
    occurrence_drawing,
    occurrence_mermaid,
)
from cepheid.plan.occurrences.plan import OccurrencePlan
from cepheid.plan.occurrences.types import misread_types
from cepheid.requests.request_of import request_of
from occurrences.shop import shop

KINDS: dict[str, Any] = {"Login": "Any", "Logout": "Any", "Buy": "Any", "Any": []}


def plan(text: str, policy: str = "recent") -> OccurrencePlan:
    pattern = OccurrencePattern.of(text).taxonomy("type", KINDS).policy(policy)
    built = plan_of(shop(), request_of(pattern, time="at"))
    assert isinstance(built, OccurrencePlan)
    return built


def problems(text: str, policy: str = "unrestricted", measures: Any = None) -> list[str]:
    pattern = OccurrencePattern.of(text).taxonomy("type", KINDS).policy(policy)
    with pytest.raises(PatternError) as raised:
        detect(shop(), pattern, time="at", measures=measures)
    return [str(problem).split("\n")[0] for problem in raised.value.problems]


def test_all_problems_at_once() -> None:
    """Problems of types, variables, columns and measures are reported together."""
    text = "T = ?x:Login[x.age > 1] (?l:T; ?user:Logoff)[l.usr = x.user AND l AND count(l) > 1 AND price > start(1)]"
    assert problems(text, measures={"a": "l.user", "A": "m.user", "events": "l.price + 'x' || l"}) == [
        "the variable 'user' has the name of a column of the events ('user')",
        "no type 'Logoff' in the taxonomy, nor among the restricted types (column 1)",
        "no variable is named 'x' (condition, column 9)",
        "'l' is an occurrence, not a value (condition, column 20)",
        "count(…) looks over several events, and a variable is one occurrence (condition, column 26)",
        "whose 'price'? A column needs a variable before it (condition, column 43)",
        "start takes one variable (condition, column 51)",
        "no column named 'usr' (condition, column 3)",
        "no variable is named 'm' (measure 'A', column 1)",
        "'l' is an occurrence, not a value (measure 'events', column 18)",
        "two measures are named 'A', as case does not count",
        "measure 'events' has the name of another column of the output",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("T = ?x:Login[x.age > 1] T", "no column named 'age' (type 'T', column 3)"),
        ("T = Login[count(user) > 1] T", "count(…) looks over several events, and a restricted type is about one"),
        ("T = Login[start(user) > 1] T", "start takes one variable (type 'T', column 1)"),
        ("T = Login[user] T", "a condition must be BOOLEAN, this is STRING (type 'T', column 1)"),
        ("T = Logon[user = 'x'] T", "no type 'Logon' in the taxonomy, nor among the restricted types (type 'T', col"),
        ("Login = Buy[user = 'x'] Login", "the type 'Login' is in the taxonomy, too (type 'Login')"),
        ("T = U[a] U = T[b] T", "restricted types cannot be made of each other in a circle: 'T' → 'U' → 'T'"),
        ("T = T[a] T", "restricted types cannot be made of each other in a circle: 'T' → 'T' (type 'T')"),
        ("T = Buy[a = 1] T = Buy[b = 1] T", "the type 'T' is declared twice"),
        (
            "?a:Buy[a.price > $least]",
            "no parameter is named 'least' (condition, column 11)",
        ),
        ("T = Buy[price > $least] T", "no parameter is named 'least' (type 'T', column 9)"),
        ("(Buy + {30000000 days}) + {6525001 days}", "nested delays add up to more than 36525000 days"),
        ("(?a:Buy; ?A:Buy)", "the variable 'A' is bound twice"),
        ("(?a:Buy - ?b:Buy)[b.price = 1]", "the variable 'b' is not known here (condition, column 1)"),
        ("(?a:Buy; ?b:Buy)[a.price]", "a condition must be BOOLEAN, this is BIGINT (condition, column 1)"),
        ("?a:Buy[a.price]", "a condition must be BOOLEAN, this is BIGINT (condition, column 1)"),
        ("(?a:Buy; ?b:Buy)[a.price < (b.user = 'x')]", "cannot compare BIGINT with BOOLEAN (condition, column 1)"),
        (
            "(?a:Buy; ?b:Buy)[concat(a.user, b.user) = 'x']",
            "concat cannot be applied across events (condition, column 1)",
        ),
        ("(?a:Buy; ?b:Buy)[a.price LIKE '1%']", "LIKE takes STRING, got BIGINT"),
        ("?a:Buy[a.price RLIKE '1']", "RLIKE takes STRING, got BIGINT"),
        ("T = Buy[price LIKE '1%'] T", "LIKE takes STRING, got BIGINT"),
        ("(?a:Buy; ?b:Buy)[a.user = ] ", "a value is expected, but the text ends here (condition, column 8)"),
        ("(?a:Buy; ?b:Buy)[a.x = 1] -[a.y = 1] Buy", "no column named 'y' (minus_if, column 3)"),
    ],
)
def test_a_problem(text: str, message: str) -> None:
    """Each problem is reported with its position."""
    assert any(message in problem for problem in problems(text))


def test_parameters() -> None:
    """A `$name` in a filter, a minus, a restricted type or a measure stands for the value that it is given."""
    text = "Dear = ?p:Buy[p.price > $least] U = Buy[price > $other] (?l:Login; Dear)[l.user = $who]"
    pattern = OccurrencePattern.of(f"{text} -[f.user = $who] ?f:Any").taxonomy("type", KINDS)
    pattern = pattern.with_parameters(least=20, who="bob", other=1)
    assert detect(shop(), pattern, time="at").num_rows == 0
    pattern = OccurrencePattern.of(text).taxonomy("type", KINDS)
    pattern = pattern.with_parameters(least=0.5, who="ann").with_parameters(least=20, who="bob", other=1)
    (row,) = detect(shop(), pattern, time="at", measures={"x": "concat(l.user, $who)"}).to_pylist()
    assert row["x"] == "bobbob"
    assert check_occurrences(pattern) == []


def test_problems_of_parameters() -> None:
    """Parameters without a value, unknown ones and unused ones are reported together; none is reported as unused while
    the types are not known.
    """
    text = "T = ?x:Buy[x.price > $least] (?l:Login; T)[l.user = $Who]"
    pattern = OccurrencePattern.of(text).taxonomy("type").with_parameters(who="bob", spare=1)
    assert [str(problem).split("\n")[0] for problem in check_occurrences(pattern)] == [
        "no parameter is named 'least' (type 'T', column 11)",
        "no parameter is named 'Who' (condition, column 10)",
        "the parameter 'spare' is not used: no condition, measure, length or count has $spare (parameter 'spare')",
    ]
    (problem,) = check_occurrences(OccurrencePattern.of("T = Buy[price > $least] T").with_parameters(least=1))
    assert problem.where == "taxonomy"
    with pytest.raises(PatternError, match=r"a value is expected, got None \(parameter 'x'\)"):
        pattern.with_parameters(x=None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Buy - Login",
            "chronicle is defined only for sequence, and, or and within, and the pattern has minus (policy)",
        ),
        (
            "Buy + 1s",
            "chronicle is defined only for sequence, and, or and within, and the pattern has a delay (policy)",
        ),
        (
            "?b:Buy",
            "chronicle is defined only for sequence, and, or and within, and the pattern has a variable (policy)",
        ),
        (
            "Buy[TRUE]",
            "chronicle is defined only for sequence, and, or and within, and the pattern has a filter (policy)",
        ),
        ("Buy; Buy", "chronicle is defined only if each type appears once, and 'Buy' appears twice (policy)"),
        ("Any; Buy", "chronicle is not defined for a type with others below it, such as 'Any' (policy)"),
        ("T = Buy[price > 1] T", "chronicle is not defined for restricted types such as 'T' (policy)"),
    ],
)
def test_contexts_have_limits(text: str, message: str) -> None:
    """Snoop's contexts are refused where they are not defined."""
    assert problems(text, "chronicle") == [message]


def test_without_a_taxonomy() -> None:
    """The column of the types must be named, exist, and hold text."""
    with pytest.raises(PatternError, match="which column holds the type of an event is not known"):
        detect(shop(), OccurrencePattern.of("A"), time="at")
    with pytest.raises(PatternError, match="no column named 'kind', which holds the types"):
        detect(shop(), OccurrencePattern.of("A").taxonomy("kind"), time="at")
    with pytest.raises(PatternError, match="the column of the types must be STRING, 'price' is BIGINT"):
        detect(shop(), OccurrencePattern.of("A").taxonomy("price"), time="at")


@pytest.mark.parametrize(("text", "window"), [("Login; Buy_2h", "(Buy)_2h"), ("Login_120s; Buy", "(Login)_120s")])
def test_windows_that_are_names(text: str, window: str) -> None:
    """A name that ends like a window is reported: as an error if all types are listed, else as a warning."""
    name = window.replace("(", "").replace(")", "")
    length = name.partition("_")[2]
    hint = f"For a window write parentheses: {window}, or (A; B)_{length} around all that it is about."
    (problem,) = check_occurrences(OccurrencePattern.of(text).taxonomy("type", KINDS))
    assert problem.message == f"no type {name!r} in the taxonomy, nor among the restricted types"
    assert (problem.hint or "").startswith(hint)
    pattern = OccurrencePattern.of(text).taxonomy("type")
    with pytest.warns(CepheidWarning, match=re.escape(f"{name!r} is read as the name of a type. {hint} If it is one,")):
        detect(shop(), pattern, time="at")
    assert explain_occurrences(pattern).endswith(
        'If it is one, list all types in the taxonomy, as in {"transfer": []}\n'
    )
    assert not check_occurrences(OccurrencePattern.of(text).taxonomy("type", KINDS | {name: "Any"}))


def test_names_that_are_no_windows() -> None:
    """Types may end in an underscore and a number or a word, and restricted types may end like windows."""
    for text in ("Login_2", "Login_2nd; Buy_s", "Login_2h = Buy[price > 1] Login_2h"):
        assert not list(misread_types(OccurrencePattern.of(text).taxonomy("type")))


def test_restricted_types_that_are_misspelled() -> None:
    """The nearest restricted type is suggested also where any name may be a type, if nothing else uses it."""
    text = "Dear = ?p:Buy[p.price > 10] (Login; Daer)"
    (problem,) = check_occurrences(OccurrencePattern.of(text).taxonomy("type", KINDS))
    assert problem.hint == "Did you mean 'Dear'?"
    with pytest.warns(CepheidWarning, match="'Daer' is read as a type of the events, and a restricted type is not"):
        detect(shop(), OccurrencePattern.of(text).taxonomy("type"), time="at")
    assert not list(misread_types(OccurrencePattern.of(f"{text}; Dear").taxonomy("type")))


def test_types_that_the_taxonomy_does_not_have() -> None:
    """If the taxonomy does not list all types, others are allowed; a probable misspelling is reported."""
    kinds = {"Login": "Session", "Logout": "Session"}
    pattern = OccurrencePattern.of("Dear = Buy[price > 10] (Session; Dear)").taxonomy("type", kinds)
    all_types = pattern.taxonomy("type", kinds | {"Buy": []})
    assert not list(misread_types(pattern))
    found = detect(shop(), pattern, time="at")
    assert found.num_rows > 0
    assert found == detect(shop(), all_types, time="at")
    for name in ("Logoff", "login"):
        misspelled = OccurrencePattern.of(f"{name}; Buy").taxonomy("type", kinds)
        message = f"{name!r} is read as a type of its own, as the taxonomy does not have it. Did you mean 'Log"
        with pytest.warns(CepheidWarning, match=message):
            detect(shop(), misspelled, time="at")
        with pytest.raises(PatternError, match=f"no type {name!r} in the taxonomy, nor among the restricted types"):
            detect(shop(), misspelled.taxonomy("type", kinds | {"Buy": []}), time="at")


def test_depth() -> None:
    """An expression made in Python has the same limit of depth as a text."""
    pattern = OccurrencePattern.of("A").taxonomy("type")
    expression = pattern.expression
    for _ in range(300):
        expression = expression.within("1 second")
    with pytest.raises(PatternError, match="operators are nested more than 200 levels deep"):
        detect(shop(), OccurrencePattern.of(expression).taxonomy("type"), time="at")


def test_equal_parts_are_one() -> None:
    """Equal sub-expressions are one operator, and equal types are one column."""
    built = plan("((Login; Buy) & Logout) | ((Login; Buy) - Logout)")
    assert [operator.kind for operator in built.operators].count(Kind.THEN) == 1
    assert len(built.bits) == 3


def test_a_drawing_without_events() -> None:
    """The drawing shows the expression as it is written, equal parts once, with labels of one line."""
    text = '((A; B)_2h + 0s) | (?s:(A; B) -[a.x = "y"\n OR b] C)'
    assert occurrence_drawing(OccurrencePattern.of(text)).split("\n") == [
        "flowchart BT",
        '    n0["event A"]',
        '    n1["event B"]',
        '    n2["then"]',
        "    n0 --> n2",
        "    n1 --> n2",
        '    n3["within 2 hours"]',
        "    n2 --> n3",
        '    n4["plus 0 seconds"]',
        "    n3 --> n4",
        '    n5["as s"]',
        "    n2 --> n5",
        '    n6["event C"]',
        '    n7["minus if a.x = #quot;y#quot; OR b"]',
        "    n5 --> n7",
        "    n6 --> n7",
        '    n8["or"]',
        "    n4 --> n8",
        "    n7 --> n8",
    ]


def test_labels_of_drawings_are_escaped() -> None:
    """Characters in conditions and types that a drawing can only show as entities are escaped."""
    text = "(?a:`X#1;`; B)[a.`x` < '>']"
    assert [line for line in occurrence_drawing(OccurrencePattern.of(text)).split("\n") if "[" in line] == [
        '    n0["event X#35;1;"]',
        '    n1["as a"]',
        '    n2["event B"]',
        '    n3["then"]',
        "    n4[\"where a.#96;x#96; #lt; '#gt;'\"]",
    ]
    drawn = occurrence_mermaid(plan("?l:Login[l.user < '#`']; Logout"))
    assert "[\"event (#96;type#96; IN ('Login')) AND (user #lt; '#35;#96;')\"]" in drawn


def test_long_lists_are_shortened() -> None:
    """A long list in a condition is explained by its first values and their number; texts in it may have any signs."""
    names = ["'a, (b)'", r"'it\'s'", "'c'", *(f"'n{number}'" for number in range(6))]
    explained = explain_occurrence_plan(plan(f"?l:Login[l.user IN ({', '.join(names)})]; Logout"))
    assert r"(user IN ('a, (b)', 'it\'s', 'c', … 9 in all))" in explained
    assert "IN ('a', 'b')" in explain_occurrence_plan(plan("?l:Login[l.user IN ('a', 'b')]; Logout"))


def test_conditions_on_one_event_are_lifted() -> None:
    """Conditions on one event restrict its type, so that the recent policy is applied at every operator."""
    built = plan("?l:Login[l.user = 'ann'][length(l.user) = 3]; Logout")
    assert [bit.sql for bit in built.bits] == [
        "(`type` IN ('Login')) AND (user = 'ann') AND (length(user) = 3)",
        "`type` IN ('Logout')",
    ]
    assert built.by_operator
    assert not built.warnings
    assert not plan("(?l:Login; ?o:Logout)[l.user = o.user]").by_operator


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("(Login; Logout)[l.user = 'ann']", "no variable is named 'l'", "No variable is bound here: bind one, as in"),
        ("(?l:Login; Logout)[start(m) > end(l)]", "no variable is named 'm'", "Known here: l"),
        ("Login[user = 'ann']", "whose 'user'?", "Write v.user. No variable is bound here"),
        ("(?l:Login; Logout)[user = 'ann']", "whose 'user'?", "Write l.user."),
    ],
)
def test_names_that_stand_for_nothing(text: str, problem: str, hint: str) -> None:
    """The hint names what to write instead."""
    (found,) = check_occurrences(OccurrencePattern.of(text).taxonomy("type", KINDS))
    assert found.message.startswith(problem)
    assert found.hint.startswith(hint)


def test_without_events() -> None:
    """Problems that need no columns are reported without events."""
    text = "(?l:Login; ?l:Out)[x.user = 1 AND l.anything = 2 AND l.user =]"
    pattern = OccurrencePattern.of(text).taxonomy("type", KINDS)
    assert [str(problem).split("\n")[0] for problem in check_occurrences(pattern, {"m": "k.user"})] == [
        "the variable 'l' is bound twice",
        "no type 'Out' in the taxonomy, nor among the restricted types (column 1)",
        "a value is expected, but the text ends here (condition, column 42)",
        "no variable is named 'k' (measure 'm', column 1)",
    ]
    assert not check_occurrences(OccurrencePattern.of("(?l:Login; Buy)[l.anything = 2]").taxonomy("type", KINDS))

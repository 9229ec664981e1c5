"""Arguments that a public call does not have: the message says what to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from inspect import isclass, isfunction, signature
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid import PatternError, SchemaError, detect, explain, leaf_types, why
from cepheid.host import Host, open_host, restore_host
from cepheid.streams import rebalance
from cepheid.testing import assert_matches

MADE_BY_CALLS = (
    Host,
    cepheid.Pattern,
    cepheid.OccurrencePattern,
    cepheid.IntervalPattern,
    cepheid.Occurrence,
    cepheid.Skip,
)
WITH_METHODS = (cepheid.Matcher, cepheid.IntervalMatcher, cepheid.Report, *MADE_BY_CALLS)
TAKES_ANY = {"Pattern.with_parameters", "OccurrencePattern.with_parameters", "IntervalPattern.with_parameters"}
TAKES_ANY |= {"IntervalPattern.pal", "IntervalPattern.seq"}
"""Their named arguments are parameters or variables."""


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    named = [getattr(cepheid, name) for name in cepheid.__all__]
    for call in (*filter(isfunction, named), rebalance, open_host, restore_host, assert_matches):
        yield call.__name__, call
    for made in (cepheid.Limits, cepheid.Subscriber):
        yield made.__name__, made
    for made in WITH_METHODS:
        assert isclass(made)
        if made not in MADE_BY_CALLS:
            yield made.__name__, made
        for name, member in vars(made).items():
            call = member.__func__ if isinstance(member, staticmethod) else member
            if isfunction(call) and not name.startswith("_") and f"{made.__name__}.{name}" not in TAKES_ANY:
                yield f"{made.__name__}.{name}", call


CALLS = dict(public_calls())


@pytest.mark.parametrize("name", CALLS)
def test_unknown_arguments_are_refused_with_advice(name: str) -> None:
    """All public calls say which call was given which argument that it does not have."""
    with pytest.raises(SchemaError, match=f"^quite_unknown: {name} has no such argument. {name} (has|takes) "):
        CALLS[name](quite_unknown=1)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (
            detect,
            {"late_by": "end"},
            "late_by: detect has no such argument, but IntervalMatcher has. detect has events, pattern, key, ",
        ),
        (
            explain,
            {"as_of": "2026"},
            "as_of: explain has no such argument, but detect has. explain has pattern, events, key",
        ),
        (why, {"outputs": "late"}, "outputs: why has no such argument, but detect has."),
        (leaf_types, {"colums": "n"}, "colums: leaf_types has no such argument. Did you mean columns?"),
    ],
)
def test_the_message_says_where_the_argument_belongs(
    call: Callable[..., Any], arguments: dict[str, Any], message: str
) -> None:
    """The message names similar arguments, or all of them, and another call that has the argument."""
    with pytest.raises(SchemaError) as error:
        call(**arguments)
    assert str(error.value).startswith(message)


def test_all_faults_are_reported_at_once() -> None:
    """Several unknown arguments, and those of earlier versions, are in one message."""
    with pytest.raises(SchemaError) as error:
        detect(None, None, start="a", nosuch=1, consistency=2)  # type: ignore[call-overload]
    assert [line.split(":")[0] for line in str(error.value).splitlines()] == ["start", "nosuch", "consistency"]


@pytest.mark.parametrize("name", CALLS)
def test_too_many_arguments_are_refused(name: str) -> None:
    """All public calls say how many arguments they take without names, if they are given more."""
    named = [one for one in signature(CALLS[name]).parameters.values() if one.kind is one.KEYWORD_ONLY]
    if any(one.kind is one.VAR_POSITIONAL for one in signature(CALLS[name]).parameters.values()):
        return
    message = rf"^{name} (takes no arguments, and was given \d+|was given \d+ arguments? without names; )"
    with pytest.raises(SchemaError, match=message) as error:
        CALLS[name](*range(20))
    assert str(error.value).endswith(", ".join(one.name for one in named))


def test_missing_arguments_are_named() -> None:
    """All public calls name the arguments that they need, if these are not given."""
    for name, call in CALLS.items():
        parameters = [one for one in signature(call).parameters.values() if one.name != "self"]
        needed = [one.name for one in parameters if one.default is one.empty and one.kind is not one.VAR_POSITIONAL]
        if not needed:
            continue
        with pytest.raises(SchemaError) as error:
            call(*[None] * ("self" in signature(call).parameters))
        verb = "is" if len(needed) == 1 else "are"
        assert str(error.value).startswith(f"{name} needs {', '.join(needed)}, which {verb} missing. It has ")


def test_an_argument_that_is_given_twice() -> None:
    """An argument that is given with its name and without is named."""
    with pytest.raises(SchemaError, match=r"^stage: Pattern\.begin was given it twice, with its name and without$"):
        cepheid.Pattern.begin("a", stage="b")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda one: one.trace(k="x"),
            r"k: Why.trace has no such argument. Name the columns of the key in one argument: trace\(\{'k': 'x'\}\)",
        ),
        (
            lambda one: one.trace(1),
            r"trace: 1 is no key; give a value for each of its columns, as in trace\(\{'column': ",
        ),
    ],
)
def test_the_key_of_a_trace(call: Callable[[Any], Any], message: str) -> None:
    """A key that is given by the names of its columns, or that is none, is refused with what to write."""
    events = pa.table({"k": ["x"], "at": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(SchemaError, match=message):
        call(why(events, cepheid.Pattern.begin("a"), key="k", time="at"))


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (detect, {"tz": "UTC"}, "Did you mean time_zone?"),
        (detect, {"data": 1}, "Did you mean events?"),
        (why, {"df": 1}, "Did you mean events?"),
        (detect, {"patterns": {}}, "Did you mean pattern?"),
        (detect, {"within": "1 hour"}, "It belongs to the pattern: write pattern.within(…)"),
        (cepheid.Matcher, {"with_in": "1 hour"}, "It belongs to the pattern: write pattern.within(…)"),
        (detect, {"skip": cepheid.Skip.to_next()}, "It belongs to the pattern: write pattern.skip(…)"),
        (cepheid.Matcher, {"max_partial_matches": 9}, "Write limits=Limits(max_partial_matches=9)"),
        (cepheid.Pattern.begin("a").where, {"nam": "x"}, "Did you mean name?"),
    ],
)
def test_the_argument_that_is_meant(call: Callable[..., Any], arguments: dict[str, Any], message: str) -> None:
    """Names that other libraries use, and what belongs to the pattern or to Limits, have their place in the message."""
    with pytest.raises(SchemaError) as error:
        call(**arguments)
    assert str(error.value).endswith(message)


def test_each_limit_has_its_advice() -> None:
    """A limit that is given to a call by itself belongs into Limits."""
    for limit in fields(cepheid.Limits):
        with pytest.raises(SchemaError, match=rf"Write limits=Limits\({limit.name}=1\)$"):
            detect(**{limit.name: 1})  # type: ignore[call-overload]


def test_a_list_of_patterns() -> None:
    """Several patterns are a mapping with their names."""
    for call in (detect, why):
        with pytest.raises(PatternError, match=r"several patterns are given with their names, as in \{'late': …, "):
            call(None, [cepheid.Pattern.begin("a")], time="t")  # type: ignore[arg-type,operator]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("followedBy", "Pattern has no 'followedBy'. Did you mean followed_by?"),
        ("oneOrMore", "Pattern has no 'oneOrMore'. Did you mean one_or_more?"),
        ("notNext", "Pattern has no 'notNext'. Did you mean not_next?"),
        ("subtyp", "Pattern has no 'subtyp'. Did you mean subtype?"),
        ("_subtype", "Pattern has no '_subtype'"),
    ],
)
def test_names_of_flinkcep(name: str, message: str) -> None:
    """A method by the name that it has in Java is an AttributeError that names it; others as well."""
    with pytest.raises(AttributeError) as error:
        getattr(cepheid.Pattern.begin("a"), name)
    assert str(error.value) == message


def test_names_of_skip_strategies() -> None:
    """A strategy by the name that it has in Java is an AttributeError that names it; one that is not called, too."""
    for name, meant in (
        ("pastLastEvent", "past_last_event"),
        ("skipPastLastEvent", "past_last_event"),
        ("noSkip", "no_skip"),
    ):
        with pytest.raises(AttributeError, match=f"^Skip has no '{name}'. Did you mean {meant}\\?$"):
            getattr(cepheid.Skip, name)
    for strategy, written in (
        (cepheid.Skip.past_last_event, "past_last_event()"),
        (cepheid.Skip.to_last, "to_last('stage')"),
    ):
        with pytest.raises(PatternError, match=re.escape(f"was not called: write Skip.{written}")):
            cepheid.Pattern.begin("a").skip(strategy)  # type: ignore[arg-type]


def test_the_error_of_a_property_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AttributeError within a property of a pattern is raised as it is."""
    monkeypatch.setattr(cepheid.Pattern, "picture", property(lambda self: self.stages.nowhere))
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'nowhere'"):
        _ = cepheid.Pattern.begin("a").picture

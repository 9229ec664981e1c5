"""Arguments that a public call does not have: the message says what to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import isclass, isfunction, signature
from typing import Any

import pytest

import cepheid
from cepheid import SchemaError, detect, explain, leaf_types, why
from cepheid.host import Host, open_host, restore_host
from cepheid.lang.known_arguments import ARGUMENTS
from cepheid.streams import rebalance
from cepheid.testing import assert_matches

WITH_METHODS = (cepheid.Matcher, cepheid.IntervalMatcher, Host)


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    named = [getattr(cepheid, name) for name in cepheid.__all__]
    for call in (*filter(isfunction, named), rebalance, open_host, restore_host, assert_matches):
        yield call.__name__, call
    for made in (cepheid.Limits, cepheid.Subscriber):
        yield made.__name__, made
    for made in WITH_METHODS:
        assert isclass(made)
        if made is not Host:  # open_host makes it
            yield made.__name__, made
        methods = [(name, call) for name, call in vars(made).items() if isfunction(call) and not name.startswith("_")]
        yield from ((f"{made.__name__}.{name}", call) for name, call in methods if len(signature(call).parameters) > 1)


CALLS = dict(public_calls())


@pytest.mark.parametrize("name", CALLS)
def test_unknown_arguments_are_refused_with_advice(name: str) -> None:
    """All public calls say which call was given which argument that it does not have."""
    with pytest.raises(SchemaError, match=f"^quite_unknown: {name} has no such argument. {name} has "):
        CALLS[name](quite_unknown=1)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (
            detect,
            {"changes": "what"},
            "changes: detect has no such argument, but IntervalMatcher has. detect has events, pattern, key, ",
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


def test_the_listed_arguments_are_those_of_the_calls() -> None:
    """ARGUMENTS has each named argument of these calls once, at the first call that has it."""
    listed: set[str] = set()
    for name, arguments in ARGUMENTS.items():
        has = {
            one.name
            for one in signature(CALLS[name]).parameters.values()
            if one.kind is one.KEYWORD_ONLY or one.default is not one.empty
        }
        assert set(arguments) <= set(signature(CALLS[name]).parameters), name
        assert not listed & set(arguments), name
        listed |= set(arguments)
        assert has <= listed, f"{name}: {has - listed}"

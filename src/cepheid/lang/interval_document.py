"""Interval patterns as plain values, as pattern files have them.

The relations, orders and parts of negations are text in the notation of the query, so that a file reads as the query
does; `interval_from_form` inverts `interval_form`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from cepheid.errors import PatternError, Problem, did_you_mean
from cepheid.lang.cursor import Cursor
from cepheid.lang.duration import format_duration, parse_duration
from cepheid.lang.interval import IntervalPattern
from cepheid.lang.interval_grammar import (
    listed,
    order,
    order_text,
    quoted,
    read,
    relations,
    relations_text,
    tree,
    tree_text,
    variable,
)
from cepheid.lang.interval_values import (
    Consistency,
    Mode,
    Negation,
    Pair,
    Positive,
    consistency_named,
    scope_named,
)
from cepheid.lang.marked_text import Value

_T = TypeVar("_T")

KEYS = ("name", "mode", "events", "hierarchy", "relations", "order", "without", "where", "within", "consistency")
"""Of the pattern."""
NEGATION_KEYS = ("variable", "type", "scope", "left", "right", "order", "where")


def interval_form(pattern: IntervalPattern) -> dict[str, Value]:
    """The pattern as a mapping of texts, lists and mappings; what is not there has no key."""
    negations: list[Value] = [_negation_form(negation) for negation in pattern.negations]
    pairs: list[Value] = [f"{quoted(p.left)} {relations_text(p.relations)} {quoted(p.right)}" for p in pattern.pairs]
    whole: dict[str, Value] = {
        "name": pattern.name,
        "mode": pattern.mode.value,
        "events": {p.variable: p.type for p in pattern.positives},
        "hierarchy": None if pattern.tree is None else tree_text(pattern.tree),
        "relations": pairs or None,
        "order": order_text(pattern.order) or None,
        "without": negations or None,
        "where": pattern.condition,
        "within": None if pattern.window is None else format_duration(pattern.window) or "0 seconds",
        "consistency": None if pattern.consistency is Consistency.CONSERVATIVE else pattern.consistency.value,
    }
    return {key: value for key, value in whole.items() if value is not None}


def _negation_form(negation: Negation) -> Value:
    whole: dict[str, Value] = {
        "variable": negation.variable,
        "type": negation.type,
        "scope": None if negation.scope is None else negation.scope.value,
        "left": ", ".join(map(quoted, negation.left)) or None,
        "right": ", ".join(map(quoted, negation.right)) or None,
        "order": order_text(negation.order) or None,
        "where": negation.condition,
    }
    return {key: value for key, value in whole.items() if value is not None}


def interval_from_form(form: Mapping[str, Any]) -> IntervalPattern:
    """The pattern that the values are.

    Raises:
        PatternError: with all that is wrong with them.
    """
    problems = list(_unknown_keys(form, KEYS, "pattern"))
    get = _Reader(form, "", problems)
    no_events: dict[str, str] = {}
    events = get.of("events", _events, no_events)
    no_list: list[Any] = []
    pattern = IntervalPattern(
        get.of("mode", lambda mode: Mode[_text(mode).upper()], Mode.PAL),
        tuple(Positive(variable, type_) for variable, type_ in events.items()),
        tree=get.of("hierarchy", lambda text: read(_text(text), tree), None),
        pairs=get.of("relations", lambda texts: tuple(read(_text(one), _pair) for one in _list(texts)), ()),
        order=get.of("order", lambda text: read(_text(text), order), ()),
        negations=tuple(
            _negation(one, f"without {number}", problems)
            for number, one in enumerate(get.of("without", _list, no_list), 1)
        ),
        condition=get.of("where", _text, None),
        window=get.of("within", lambda length: parse_duration(length, or_zero=True), None),
        consistency=get.of("consistency", lambda text: consistency_named(_text(text)), Consistency.CONSERVATIVE),
        name=get.of("name", _text, "pattern"),
    )
    if problems:
        raise PatternError(problems)
    return pattern


class _Reader:
    """Reads the values of one mapping; what is wrong with them is appended to `problems`."""

    def __init__(self, form: Mapping[str, Any], where: str, problems: list[Problem]) -> None:
        self._form = form
        self._where = where
        self._problems = problems

    def of(self, key: str, convert: Callable[[Any], _T], otherwise: _T) -> _T:
        if key not in self._form:
            return otherwise
        place = ", ".join(filter(None, (self._where, key)))
        try:
            return convert(self._form[key])
        except KeyError as error:
            modes = ", ".join(mode.value for mode in Mode)
            self._problems.append(Problem(f"{error.args[0]!r} is none of {modes}", place))
        except PatternError as error:
            self._problems += [
                Problem(problem.message, place, problem.text, problem.span, problem.hint) for problem in error.problems
            ]
        return otherwise


def _unknown_keys(form: Mapping[str, Any], known: tuple[str, ...], where: str) -> Iterator[Problem]:
    for key in form:
        if key not in known:
            yield Problem(f"no key {key!r} is known here", where, hint=did_you_mean(str(key), known))


def _negation(form: Any, where: str, problems: list[Problem]) -> Negation:
    if not isinstance(form, Mapping):
        problems.append(Problem(f"a mapping with {', '.join(NEGATION_KEYS)} is expected, got {form!r}", where))
        return Negation("", "")
    problems += _unknown_keys(form, NEGATION_KEYS, where)
    problems += [Problem(f"{key!r} is missing", where) for key in ("variable", "type") if key not in form]
    get = _Reader(form, where, problems)
    return Negation(
        get.of("variable", _text, ""),
        get.of("type", _text, ""),
        get.of("scope", lambda name: scope_named(_text(name)), None),
        get.of("left", lambda text: read(_text(text), _variables), ()),
        get.of("right", lambda text: read(_text(text), _variables), ()),
        get.of("order", lambda text: read(_text(text), order), ()),
        get.of("where", _text, None),
    )


def _variables(cursor: Cursor) -> tuple[str, ...]:
    return listed(cursor, variable)


def _pair(cursor: Cursor) -> Pair:
    return Pair(variable(cursor), relations(cursor), variable(cursor))


def _events(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise PatternError(f"variables with the types of their events are expected, as in {{a: A}}, got {value!r}")
    return {_text(variable_): _text(type_) for variable_, type_ in value.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise PatternError(f"text is expected, got {value!r}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise PatternError(f"a list is expected, got {value!r}")
    return value

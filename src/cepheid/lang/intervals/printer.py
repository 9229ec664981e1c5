"""Interval patterns → the query text that `cepheid.lang.intervals.parser` reads as the same pattern."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cepheid.errors import PatternError
from cepheid.lang import calls
from cepheid.lang.consistency import Consistency
from cepheid.lang.duration import format_duration
from cepheid.lang.intervals.grammar import clause_words, order_text, quoted, relations_text, tree_text
from cepheid.lang.intervals.values import Negation, Window, variables_of

if TYPE_CHECKING:
    from cepheid.lang.intervals.pattern import IntervalPattern


def interval_text(pattern: IntervalPattern) -> str:
    """The query text that `interval_pattern` reads as the pattern, except for its name.

    Raises:
        PatternError: a condition has a word that begins a clause, outside parentheses.
    """
    for condition in (pattern.condition, *(negation.condition for negation in pattern.negations)):
        _check_printable(condition or "")
    return _text(pattern)


def calls_text(pattern: IntervalPattern) -> str:
    """The calls that make the pattern, as Python."""
    return calls.laid_out([*_calls(pattern)])


def _calls(pattern: IntervalPattern) -> Iterator[str]:
    yield f"interval_pattern({calls.quoted_lines(_text(pattern))})"
    if pattern.name != "pattern":
        yield f".named({calls.quoted(pattern.name)})"
    yield from calls.shared_calls(pattern)
    if pattern.knowledge is not None:
        yield f".with_knowledge({pattern.knowledge!r}, {pattern.mapping!r})"


def _text(pattern: IntervalPattern) -> str:
    return "\n".join(_lines(pattern))


def _lines(pattern: IntervalPattern) -> Iterator[str]:
    types = {p.variable: p.type for p in pattern.positives}
    inline = pattern.tree is not None and tuple(variables_of(pattern.tree)) == tuple(types)
    events = [f"{quoted(p.type)} {quoted(p.variable)}" for p in pattern.positives]
    if inline and pattern.tree is not None and not isinstance(pattern.tree, str):
        whole = tree_text(pattern.tree, lambda v: f"{quoted(types[v])} {quoted(v)}")
        yield f"EVENT {pattern.mode.value}{whole}"
    else:
        yield f"EVENT {pattern.mode.value}({', '.join(events)})"
        if pattern.tree is not None:
            yield f"TREE {tree_text(pattern.tree)}"
    if pattern.pairs:
        pairs = (f"{quoted(p.left)} {relations_text(p.relations)} {quoted(p.right)}" for p in pattern.pairs)
        yield f"RELATE {', '.join(pairs)}"
    if pattern.order:
        yield f"ORDER {order_text(pattern.order)}"
    for negation in pattern.negations:
        yield f"WITHOUT ({' '.join(_negation_words(negation))})"
    if pattern.condition is not None:
        yield f"WHERE {pattern.condition}"
    if pattern.window is not None:
        of_starts = " OF STARTS" if pattern.window_of is Window.STARTS else ""
        yield f"WITHIN {format_duration(pattern.window) or '0 seconds'}{of_starts}"
    if pattern.consistency is Consistency.REALTIME:
        yield "REALTIME 1"
    elif pattern.consistency is not Consistency.CONSERVATIVE:
        yield f"CONSISTENCY {pattern.consistency.value}"


def _negation_words(negation: Negation) -> Iterator[str]:
    yield quoted(negation.type)
    yield quoted(negation.variable)
    if negation.scope is not None:
        yield f"{negation.scope.value}({parts_text(negation)})"
    if negation.order:
        yield f"ORDER {order_text(negation.order)}"
    if negation.condition is not None:
        yield f"WHERE {negation.condition}"


def parts_text(negation: Negation) -> str:
    """The two parts, as in `a, b | c`; an empty one is left out."""
    left, right = (", ".join(map(quoted, part)) for part in (negation.left, negation.right))
    return f"{left} | {right}".strip()


def _check_printable(condition: str) -> None:
    for token in clause_words(condition):
        message = f"the condition {condition!r} has the word {token.text}, which begins a clause of the query text"
        raise PatternError(f"{message}. Write it between back-quotes")

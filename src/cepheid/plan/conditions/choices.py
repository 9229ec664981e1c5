"""A function of a choice between values becomes a choice between the function's values.

`hour(coalesce(b.at, a.at))` is about two events, and scripts do not know `hour`. But
`CASE WHEN b.at IS NOT NULL THEN hour(b.at) ELSE hour(a.at) END` is the same, and each `hour` is about one event: the
host's SQL engine computes it as a column. The same holds for greatest and least of two values. It is the same only if
all values have one type, because SQL first casts them to a common one: `concat(coalesce(a.whole, b.decimal))` of 1 is
'1.00'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from cepheid.lang.expression import Call, Literal
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.resolve import Apply, Called, Column, Constant, Folded, Node
from cepheid.plan.conditions.script import Fold
from cepheid.plan.conditions.script_functions import COMPILED_FUNCTIONS
from cepheid.plan.conditions.value_casts import cast_node

_FIRST_PRESENT = frozenset({"coalesce", "nvl", "ifnull"})
_EXTREMES = {"greatest": ">=", "least": "<="}
_CHOOSING = _FIRST_PRESENT | {"case", "case_of", "if"}


def with_functions_inside(node: Node) -> Node:
    """The node with functions moved into the choices that they are applied to, except those that kernels compute."""
    if not isinstance(node, Apply) or resolve.is_of_one_event(node):
        return node
    node = replace(node, args=tuple(with_functions_inside(arg) for arg in node.args))
    if node.source is None or node.call.function in COMPILED_FUNCTIONS:
        return node
    places = [place for place, arg in enumerate(node.args) if not isinstance(arg, Constant)]
    if len(places) != 1 or not isinstance(applied_to := node.args[places[0]], Apply):
        return node
    choice = _by_comparison(applied_to)
    if not _is_choice(choice):
        return node
    return with_functions_inside(_moved(node, choice, lambda value: applied(node, places[0], value)))


def with_function_inside(node: Apply, type_of: Callable[[Node], pa.DataType]) -> Node | None:
    """The node, a `+`, `-` or cast, with the operation moved into what it is applied to: a choice between values, or
    the min or max of dates, whose order `+`, `-` and casts to times keep, also two casts one after the other. None: it
    is applied to something else.

    The order of times is not kept: a month after 30 January 23:00 and after 31 January 1:00 is 28 February.

    Raises:
        ValueError: a constant text among the values cannot be cast.
    """
    places = [place for place, arg in enumerate(node.args) if not is_constant(arg)]
    if len(places) != 1:
        return None
    applied_to = node.args[places[0]]

    def apply(value: Node) -> Node:
        is_cast = node.call.function == "cast"
        return cast_node(value, type_of(node)) if is_cast else applied(node, places[0], value)

    if isinstance(applied_to, Folded) and applied_to.fold in (Fold.MIN, Fold.MAX):
        assert applied_to.argument is not None
        folded = applied_to.argument
        if node.call.function == "cast" and isinstance(folded, Apply) and folded.call.function == "cast":
            folded = folded.args[0]
        is_ordered = type_of(folded) == pa.date32()
        return replace(applied_to, argument=apply(applied_to.argument)) if is_ordered else None
    if not isinstance(applied_to, Apply):
        return None
    choice = _by_comparison(applied_to)
    return _moved(node, choice, apply) if _is_choice(choice) else None


def is_constant(node: Node) -> bool:
    return not any(isinstance(part, Column | Folded | Called) for part in resolve.walk(node))


def is_choosing(node: Apply) -> bool:
    """Whether the node's value is one of several."""
    return node.call.function in _CHOOSING or node.call.function in _EXTREMES


def _by_comparison(node: Apply) -> Apply:
    """The greater or lesser of two values as a CASE; another node as it is."""
    if node.call.function not in _EXTREMES or len(node.args) != 2 or node.source is None:
        return node
    left, right = node.args
    operands = (resolve.expression_of(left), resolve.expression_of(right))
    is_left = Apply(Call(_EXTREMES[node.call.function], operands, node.call.span), (left, right), node.source)
    # Where one of them is NULL, so is the comparison, and the other one is chosen.
    return _in_place(node, "case", [is_left, left, _is_present(right), right, left])


def _is_choice(node: Apply) -> bool:
    """Whether the node chooses between values of single events, none of them an aggregate, and all of one type."""
    if node.call.function not in _CHOOSING:
        return False
    values = [*_chosen_from(node)]
    return all(map(resolve.is_of_one_event, values)) and len({*map(_type_or_sql, values)}) <= 1


def _chosen_from(choice: Apply) -> Iterator[Node]:
    """The values but NULL, also those of choices within the choice."""
    for place in _results(choice):
        value = choice.args[place]
        if isinstance(value, Apply) and value.call.function in _CHOOSING and not resolve.is_of_one_event(value):
            yield from _chosen_from(value)
        elif not (isinstance(value, Constant) and pa.types.is_null(value.literal.type)):
            yield value


def _type_or_sql(value: Node) -> pa.DataType | str:
    """What tells whether values have one type: the type of a column, a literal or a cast; other values have the type of
    the same SQL on another event.
    """
    match value:
        case Column():
            return value.type
        case Constant(literal=literal):
            return literal.type
        case Apply(call=Call("cast", (_, Literal(type=type_)))):
            return type_
        case _:
            return resolve.sql_of(value)


def _results(choice: Apply) -> list[int]:
    """The places of the arguments that are chosen between."""
    last = len(choice.args) - 1
    if choice.call.function in _FIRST_PRESENT:
        return [*range(last + 1)]
    return [*range(2 if choice.call.function == "case_of" else 1, last, 2), last]


def _moved(function: Apply, choice: Apply, apply: Callable[[Node], Node]) -> Node:
    """The choice between the function's values; `apply` gives its value for one."""
    results = {place: apply(choice.args[place]) for place in _results(choice)}
    if choice.call.function not in _FIRST_PRESENT:
        return _in_place(function, choice.call.function, [results.get(i, arg) for i, arg in enumerate(choice.args)])
    args: list[Node] = []
    *earlier, last = results
    for place in earlier:
        args += [_is_present(choice.args[place]), results[place]]
    return _in_place(function, "case", [*args, results[last]]) if args else results[last]


def _in_place(function: Apply, name: str, args: list[Node]) -> Apply:
    """A choice in place of the function."""
    return Apply(Call(name, tuple(map(resolve.expression_of, args)), function.call.span), tuple(args), function.source)


def applied(function: Apply, at: int, value: Node) -> Apply:
    """The function with the value in place of its argument number `at`. In its SQL, the value's stands there."""
    assert function.source is not None
    args = [resolve.expression_of(value) if i == at else arg for i, arg in enumerate(function.call.args)]
    call = replace(function.call, args=tuple(args))
    source = function.source.with_edit(resolve.span_of(function.args[at]), f"({_sql(value)})")
    return Apply(call, tuple(value if i == at else arg for i, arg in enumerate(function.args)), source)


def _is_present(value: Node) -> Apply:
    """That the value is not NULL."""
    assert value.source is not None
    span = resolve.span_of(value)
    source = value.source.with_edit(span, f"({_sql(value)}) IS NOT NULL")
    return Apply(Call("is_not_null", (resolve.expression_of(value),), span), (value,), source)


def _sql(value: Node) -> str:
    """The value's SQL; that of an ELSE which is not written is NULL."""
    is_null = isinstance(value, Constant) and pa.types.is_null(value.literal.type)
    return "NULL" if is_null else resolve.sql_of(value)

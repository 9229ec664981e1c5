"""Long lists of constants as tables: DuckDB reads a table of a million values faster than SQL text with a thousand.

Measured for `item IN (…)` over 2 million events: 100,000 constants as text take 1.6 s, and as a table 0.1 s; over ten
events 1.5 s and 6 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from cepheid.hosts.duckdb.fragment import Fragment
from cepheid.lang.expression import Call, Expression, Literal
from cepheid.plan.conditions.types import is_integer, is_string

LONG = 100
"""Lists with more constants become tables."""


@dataclass
class Lists:
    """The tables of a query by their names; each has one column, v."""

    translate: Callable[[Expression], Fragment]
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def moved(self, expression: Expression) -> Expression:
        """The expression with tables in place of its long lists."""
        if not isinstance(expression, Call):
            return expression
        if (
            expression.function == "in"
            and len(expression.args) > LONG
            and (found := self._table(expression)) is not None
        ):
            name = f"list{len(self.tables)}"
            self.tables[name] = found
            return Call(IN_LIST, (expression.args[0], Literal(name, pa.string(), expression.span)), expression.span)
        return replace(expression, args=tuple(map(self.moved, expression.args)))

    def _table(self, call: Call) -> pa.Table | None:
        """The constants, if they are of the kind of the value that is looked for: texts or integers."""
        value, *options = call.args
        looked_for = self.translate(value)
        # DuckDB makes a join, which computes the value for all events. So it must not fail for some.
        kinds = [] if looked_for.raises else [kind for kind in (is_string, is_integer) if kind(looked_for.type)]
        literals = [one for one in options if isinstance(one, Literal)]
        if len(literals) < len(options) or not kinds or not all(kinds[0](one.type) for one in literals):
            return None
        type_ = pa.string() if kinds[0] is is_string else pa.int64()
        return pa.table({"v": pa.array([one.value for one in literals], type_)})


IN_LIST = "in list"
"""No function that a text can name."""


def in_list(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """Whether the value is in a table of `Lists`."""
    value, name = args
    assert name.literal is not None
    query = f"SELECT v FROM {name.literal.value!s}"  # noqa: S608 - the name is made in `Lists`
    return Fragment(f"({value.text} IN ({query}))", pa.bool_(), raises=value.raises)

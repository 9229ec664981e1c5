"""What Altair's own types do not say."""

from __future__ import annotations

from typing import Any, TypeAlias

import altair as alt

AnyChart: TypeAlias = Any
"""A chart of any kind; most of Altair's calls have no types."""


def inline(rows: list[dict[str, Any]]) -> Any:
    """Data that is within the chart."""
    return alt.InlineData(values=rows)


def only_what(what: str) -> Any:
    """The condition that a row is of a kind of marks."""
    return alt.FieldEqualPredicate(field="what", equal=what)

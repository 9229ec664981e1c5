"""How semantic filters are answered, as readable text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MOST = 300


class Answer(NamedTuple):
    """A semantic filter, and the SQL in its place."""

    filter: str
    sql: str


def answered(answers: Sequence[Answer]) -> Iterator[str]:
    """One line for each filter: `constant` if no event matters, otherwise `lifted`, with the SQL."""
    for one in answers:
        if one.sql in ("TRUE", "FALSE"):
            holds = "holds" if one.sql == "TRUE" else "never holds"
            yield f"Filter {one.filter}: constant, no event matters; it {holds}"
        else:
            yield f"Filter {one.filter}: lifted, {shortened(one.sql)}"


def shortened(sql: str) -> str:
    """The SQL, without the middle if it is long."""
    return sql if len(sql) <= _MOST else f"{sql[: _MOST // 2]} … {sql[-_MOST // 2 :]}"

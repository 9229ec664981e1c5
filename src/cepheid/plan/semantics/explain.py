"""How semantic filters are answered, as readable text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cepheid.knowledge.knowledge import Knowledge


class Answer(NamedTuple):
    """A semantic filter, and the SQL in its place."""

    filter: str
    sql: str


def lifted_text(knowledge: Knowledge | None, answers: Sequence[Answer]) -> Iterator[str]:
    """The lines about a pattern for whose knowledge SQL says what events mean."""
    if knowledge is not None:
        yield f"Knowledge: {knowledge}"
        yield "What events mean: lifted, SQL on their columns says it, as each says all that matters."
        yield from answered(answers)


def answered(answers: Sequence[Answer]) -> Iterator[str]:
    """One line for each filter: `constant` if no event matters, otherwise `lifted`, with the SQL."""
    for one in answers:
        if one.sql in ("TRUE", "FALSE"):
            holds = "holds" if one.sql == "TRUE" else "never holds"
            yield f"Filter {one.filter}: constant, no event matters; it {holds}"
        else:
            yield f"Filter {one.filter}: lifted, {shortened(one.sql, 300)}"


def shortened(sql: str, most: int = 2000) -> str:
    """The SQL, without the middle if it has more than `most` characters."""
    return sql if len(sql) <= most else f"{sql[: most // 2]} … {sql[-(most // 2) :]}"

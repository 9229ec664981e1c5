"""How semantic filters are answered, as readable text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cepheid.knowledge.knowledge import Knowledge
from cepheid.knowledge.question import Question
from cepheid.plan.semantics.name_lists import MARK

_MOST_VALUES = 8
_TEXT = r"'(?:[^'\\]|\\.)*'"
_LIST = re.compile(rf"\bIN \((?P<values>(?:{_TEXT}|[^'()])*)\)", re.DOTALL)
_SPLIT = re.compile(rf"split\('(?P<values>(?:[^'\\]|\\.)*)', '{MARK}'\)", re.DOTALL)
_NORMAL_FORM = re.compile(
    r"CASE WHEN NOT contains\((\S+), ':'\) THEN \1 WHEN instr\(\1, '<'\) > 1 THEN NULL .*? END", re.DOTALL
)
"""What `names_sql.NormalForm` makes of a column."""
_VALUE = re.compile(rf"(?:{_TEXT}|[^',])+", re.DOTALL)


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


def with_questions(sql: str, questions: Iterable[Question]) -> str:
    """The SQL with questions in words in place of the columns of their answers."""
    for one in questions:
        sql = sql.replace(f"`{one.name}`", f"[{one}]")
    return sql


def shortened(sql: str, most: int = 2000) -> str:
    """The SQL with the first values of long lists, with normal forms of names in words, and without the middle if it
    has more than `most` characters even so.
    """
    short = _NORMAL_FORM.sub(r"[the name in \1]", _LIST.sub(_first_values, _SPLIT.sub(_first_of_split, sql)))
    return short if len(short) <= most else f"{short[: most // 2]} … {short[-(most // 2) :]}"


def _first_values(found: re.Match[str]) -> str:
    values = [one.strip() for one in _VALUE.findall(found["values"])]
    return found[0] if len(values) <= _MOST_VALUES else f"IN ({_first(values)})"


def _first_of_split(found: re.Match[str]) -> str:
    """The values of a list that is written as one constant."""
    values = [f"'{value}'" for value in found["values"].split(MARK)]
    return f"array({_first(values)})"


def _first(values: Sequence[str]) -> str:
    return f"{', '.join(values[:3])}, … {len(values):,} in all"

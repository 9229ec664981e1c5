"""The classes and semantic filters of a pattern of occurrences as SQL, where each event says all that matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from cepheid.knowledge.filters.syntax import Atom, Variable
from cepheid.knowledge.question import Question
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.semantic import SemanticFilter
from cepheid.plan.occurrences.semantic import PlannedFilter, PlannedType
from cepheid.plan.occurrences.variables import Scopes
from cepheid.plan.semantics.explain import Answer, with_questions
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.lifted import Lifting


class LiftedTexts(NamedTuple):
    """SQL in place of what events mean."""

    types: Mapping[str, str]
    """By the names of types: conditions on columns."""
    conditions: Mapping[int, str]
    """By the numbers of semantic filters in `Scopes.conditions`: conditions on columns of variables."""
    answers: tuple[Answer, ...]
    """The filters, each with its SQL."""
    questions: tuple[Question, ...] = ()
    """What is asked because it has no SQL."""


def lifted_texts(
    pattern: OccurrencePattern,
    types: Mapping[str, PlannedType],
    filters: Mapping[int, PlannedFilter],
    scopes: Scopes,
    columns: pa.Schema,
) -> LiftedTexts:
    """SQL for all classes and semantic filters.

    Raises:
        NotLifted: one of them has none; so all must be asked in sessions.
    """
    assert pattern.knowledge is not None
    assert pattern.mapping is not None
    lifting = Lifting(pattern.knowledge, pattern.mapping, columns)
    conditions = {}
    for number, one in filters.items():
        certain = scopes.conditions[number].certain
        for name, variable in one.variables:
            if name not in certain or not scopes.each[variable].is_event:
                raise NotLifted(f"the variable {name!r} is not always an event")
        conditions[number] = lifting.condition(one.atoms, {name: f"{name}." for name, _ in one.variables})
    types_sql = {name: _type_sql(lifting, one) for name, one in types.items()}
    questions = tuple(lifting.questions.values())
    texts = ((scopes.conditions[number].condition, sql) for number, sql in conditions.items())
    answers = tuple(
        Answer(one.text, with_questions(sql, questions)) for one, sql in texts if isinstance(one, SemanticFilter)
    )
    return LiftedTexts(types_sql, conditions, answers, questions)


def _type_sql(lifting: Lifting, type_: PlannedType) -> str:
    atom = Atom("class", type_.class_, (Variable("event"),))
    parts = [lifting.condition((atom,), {"event": ""})]
    parts += [lifting.condition(atoms, {} if variable is None else {variable: ""}) for variable, atoms in type_.filters]
    return " AND ".join(f"({part})" for part in dict.fromkeys(parts))

"""The column that says what each row does to the event with its id."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cepheid.errors import did_you_mean
from cepheid.plan.conditions.types import is_string


def faults_of_changes(changes: object, event_id: str | None, columns: pa.Schema) -> Iterator[str]:
    """Why the column of changes cannot be used in events with these columns."""
    if event_id is None:
        yield "changes: rows change the event that has their id: name the column of ids with event_id=…"
    elif not isinstance(changes, str) or changes not in columns.names:
        yield f"changes: no column named {changes!r}. {did_you_mean(str(changes), columns.names)}"
    elif not is_string(type_ := columns.field(columns.get_all_field_indices(changes)[0]).type):
        yield f"changes: the column {changes!r} is of texts, not {type_}"

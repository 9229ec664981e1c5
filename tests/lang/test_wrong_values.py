"""Calls that take a pattern or its text refuse other values by name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cepheid import Pattern, PatternError, leaf_types, pattern_to_document, pattern_to_yaml
from cepheid.intervals import interval_pattern


@pytest.mark.parametrize("given", [None, 3, b"EVENT", ["EVENT"], Pattern.begin("a")])
def test_queries_are_text(given: Any) -> None:
    """A query of intervals that is no text is refused, as a pattern file is."""
    with pytest.raises(PatternError, match="a query is text, as in 'EVENT SEQ"):
        interval_pattern(given)


@pytest.mark.parametrize("write", [pattern_to_document, pattern_to_yaml])
def test_documents_are_those_of_patterns(write: Any) -> None:
    """Only a pattern has a document."""
    with pytest.raises(PatternError, match="a pattern is expected, got str: 'late'"):
        write("late")


def test_leaves_are_those_of_occurrences() -> None:
    """Only patterns of occurrences have leaves with types."""
    with pytest.raises(PatternError, match="leaf_types is about an OccurrencePattern, got Pattern"):
        leaf_types(pa.table({"at": []}), Pattern.begin("a"), time="at")  # type: ignore[arg-type]

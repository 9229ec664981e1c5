"""The pattern file of a command: its pattern, and problems in its conditions placed in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cepheid.errors import PatternError
from cepheid.lang.document import located_in_document, pattern_from_text, read_text
from cepheid.lang.pattern import Pattern


@dataclass(frozen=True)
class PatternFile:
    """A pattern and the text that it was read from."""

    path: Path
    text: str
    pattern: Pattern

    @contextmanager
    def problems_located(self) -> Iterator[None]:
        """Problems that are found later, in conditions, get their line and column in the file."""
        try:
            yield
        except PatternError as error:
            problems = [located_in_document(problem, self.text, source=str(self.path)) for problem in error.problems]
            raise PatternError(problems) from None


def open_pattern(path: Path) -> PatternFile:
    """Raises OSError where the file cannot be read and PatternError where it does not hold a pattern."""
    text = read_text(path)
    return PatternFile(path, text, pattern_from_text(text, source=str(path)))

"""Errors: one class for each reaction of a caller. Each message says what is wrong, where, and what to do now."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with what the user wrote.

    `text` is the whole text that was read, and `span` its offending part (start and end offsets). The line with the
    caret is made here, so code that raises only supplies the span.
    """

    message: str
    where: str | None = None
    text: str | None = None
    span: tuple[int, int] | None = None
    hint: str | None = None

    def __str__(self) -> str:
        head = f"{self.message} ({place})" if (place := self._place()) else self.message
        hint = [self.hint] if self.hint else []
        return "\n".join([head, *self._caret(), *hint])

    def of_pattern(self, name: str) -> Problem:
        """The same problem, with the name of its pattern in `where`. For several patterns at once."""
        prefix = f"pattern {name!r}"
        return replace(self, where=f"{prefix}, {self.where}" if self.where else prefix)

    def _place(self) -> str | None:
        if self.text is None or self.span is None:
            return self.where
        line, column = line_and_column(self.text, self.span[0])
        position = f"line {line}, column {column}" if "\n" in self.text else f"column {column}"
        return f"{self.where}, {position}" if self.where else position

    def _caret(self) -> list[str]:
        if self.text is None or self.span is None:
            return []
        line, column = line_and_column(self.text, self.span[0])
        source = self.text.split("\n")[line - 1].rstrip("\r")
        width = max(1, min(self.span[1] - self.span[0], len(source) - column + 1))
        return [f"  {source}", "  " + " " * (column - 1) + "^" * width]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column of `offset` in `text`, both counted from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


class PatternError(ValueError):
    """What the user wrote (pattern, condition, measure, pattern file) has problems; all of them are in `problems`."""

    def __init__(self, problems: Sequence[Problem] | Problem | str) -> None:
        if isinstance(problems, str):
            problems = [Problem(problems)]
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SchemaError(ValueError):
    """The events lack the named columns, these have unsuitable types, or another argument is wrong."""


class EventError(ValueError):
    """An event cannot be processed as it is: no key, no time, out of order, an ambiguous local time."""


class ConditionError(ArithmeticError):
    """A condition or measure failed on an event, as SQL fails in ANSI mode: overflow, division by zero."""


class SkipError(RuntimeError):
    """A match has no event to skip to, and the skip strategy has error_on_miss."""


class LimitExceeded(RuntimeError):
    """A limit was exceeded; the message names it and says what to do."""


class MatcherFailed(RuntimeError):
    """A matcher failed in the middle of an earlier call, so its results would be wrong. The message has the cause."""


class WorkerFailed(RuntimeError):
    """A worker process cannot be started, has ended, or failed unexpectedly; the message has the reason."""


class SnapshotError(ValueError):
    """A snapshot cannot be restored: it is damaged, of another format, or of another pattern."""


class StoreError(RuntimeError):
    """A durable host's store cannot be opened, read or written; what was stored before is unchanged."""


class SourceError(RuntimeError):
    """A host's source of events cannot be read, or does not have the events after the host's position any more."""


class KnowledgeError(ValueError):
    """Knowledge cannot be read, or contradicts itself; or a filter over it is wrong."""


class FilterError(KnowledgeError):
    """A filter over knowledge has a problem, which is in `problem`."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class CepheidWarning(UserWarning):
    """Something works, but perhaps not as intended. The message says what would avoid the warning."""


def warn(message: str) -> None:
    """Warns at the caller's line, which is the nearest one outside of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CepheidWarning, stacklevel=level)


@contextmanager
def in_pattern(name: str, *, named: bool = True) -> Iterator[None]:
    """Adds the pattern's name to errors that are raised within the block. With `named=False`, when there is only one
    pattern, errors remain unchanged.
    """
    prefix = f"pattern {name!r}"
    try:
        yield
    except PatternError as error:
        if not named:
            raise
        raise PatternError([problem.of_pattern(name) for problem in error.problems]) from None
    except (ConditionError, LimitExceeded, SkipError, SnapshotError) as error:
        if not named or str(error).startswith(f"{prefix}: "):  # the failure of a function has the name already
            raise
        raise type(error)(f"{prefix}: {error}") from error


_MOST_SHOWN = 100
"""Names in a hint: a host may have thousands of patterns."""


def with_noun(count: int, noun: str, *, plural: str | None = None) -> str:
    """The count and its noun: "1 row", "1,200 rows"."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def did_you_mean(name: str, known: Sequence[str], *, if_none: str = "Nothing is known here.") -> str:
    """The hint for an unknown name: the most similar known names, or else all known names, or `if_none`."""
    if close := closest(name, known):
        return f"Did you mean {' or '.join(map(repr, close))}?"
    more = f", and {len(known) - _MOST_SHOWN:,} more" if len(known) > _MOST_SHOWN else ""
    return f"Known here: {', '.join(known[:_MOST_SHOWN])}{more}" if known else if_none


def closest(name: str, known: Sequence[str]) -> list[str]:
    """The known names that `name` may be a misspelling of."""
    near = get_close_matches(name.lower(), [k.lower() for k in known], n=3, cutoff=0.6)
    return [k for k in known if k.lower() in near]

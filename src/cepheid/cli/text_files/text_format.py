"""How text files of events are written, as the options of a command line say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TextFormat:
    """How text files are written."""

    null_texts: Sequence[str] = ()
    """Texts that stand for NULL in CSV, beside the empty one."""
    separator: str | None = None
    """What separates the values of CSV; None: a comma."""
    encoding: str | None = None
    """None: UTF-8."""
    time_format: str | None = None
    """How times are written, as for strptime; None: ISO 8601."""

    @property
    def of_csv(self) -> dict[str, str]:
        """The given options that only CSV has, by their names on the command line."""
        given = {"--separator": self.separator, "--encoding": self.encoding}
        return {name: value for name, value in given.items() if value is not None}


PLAIN = TextFormat()
"""Commas, UTF-8 and ISO 8601."""

"""The file with a running host's figures, for Prometheus."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from cepheid.cli.failure import FileProblem

if TYPE_CHECKING:
    from cepheid.hosts.durable.service import Service

_SECONDS = 1.0
"""Between two versions of the file."""


class Figures:
    """Writes the figures of a service to a file, if there is one to write."""

    def __init__(self, service: Service, name: str, file: Path | None) -> None:
        """`name` is the host's in the figures."""
        self._service = service
        self._name = name
        self._file = file
        self._written = monotonic() - _SECONDS

    def update(self) -> None:
        """Replaces the file, unless that was done within the last second.

        Raises:
            FileProblem: it cannot be written.
        """
        if monotonic() - self._written >= _SECONDS:
            self.write()

    def write(self) -> None:
        """Replaces the file.

        Raises:
            FileProblem: it cannot be written.
        """
        from cepheid.hosts.prometheus import text_of, write

        if self._file is None:
            return
        self._written = monotonic()
        try:
            write(self._file, text_of(self._service.samples(self._name)))
        except OSError as error:
            raise FileProblem(f"{self._file} cannot be written: {error.strerror}") from None

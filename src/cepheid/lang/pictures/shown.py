"""What notebooks show of a result: HTML, and where that cannot be shown its text."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Shown(ABC):
    """A result that prints as text and that notebooks show as HTML."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """HTML without anything from the network."""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """The result in all types; a notebook takes the one that it likes best."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}

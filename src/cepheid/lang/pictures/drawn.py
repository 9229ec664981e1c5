"""What notebooks ask of values to show them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from cepheid.lang.pictures.box import Box
from cepheid.lang.pictures.html import html_of
from cepheid.lang.pictures.mermaid import mermaid_of

MERMAID = "text/vnd.mermaid"
"""The type under which JupyterLab draws Mermaid."""


class Drawn(ABC):
    """Shared by the kinds of pattern: a notebook shows the picture."""

    @property
    @abstractmethod
    def picture(self) -> Box:
        """The pattern as boxes."""

    def _repr_html_(self) -> str:
        return html_of(self.picture)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """The picture in all types; a notebook takes the one that it likes best."""
        return {"text/plain": repr(self), "text/html": self._repr_html_(), MERMAID: mermaid_of(self.picture)}

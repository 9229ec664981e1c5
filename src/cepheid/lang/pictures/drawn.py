"""What notebooks ask of values to show them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from cepheid.errors import closest
from cepheid.lang.pictures.box import Box
from cepheid.lang.pictures.html import html_of
from cepheid.lang.pictures.mermaid import mermaid_of
from cepheid.lang.pictures.shown import Shown

MERMAID = "text/vnd.mermaid"
"""The type under which JupyterLab draws Mermaid."""


class Drawn(Shown):
    """Shared by the kinds of pattern: a notebook shows the picture."""

    if not TYPE_CHECKING:  # a type checker reports these names itself

        def __getattr__(self, name: str) -> NoReturn:
            """Names the method that is meant, for example by FlinkCEP's name."""
            if hasattr(type(self), name):
                object.__getattribute__(self, name)  # a property, whose own error this raises again
            advice = "" if name.startswith("_") else name_advice(name, dir(type(self)))
            raise AttributeError(f"{type(self).__name__} has no {name!r}{advice}", name=name, obj=self)

    @property
    @abstractmethod
    def picture(self) -> Box:
        """The pattern as boxes."""

    def _repr_html_(self) -> str:
        return html_of(self.picture)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        return super()._repr_mimebundle_() | {MERMAID: mermaid_of(self.picture)}


def name_advice(name: str, known: Sequence[str]) -> str:
    """Names what is meant by `name`, which may have Java's form."""
    public = [one for one in known if not one.startswith("_")]
    in_python = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    close = [in_python] if in_python in public else closest(in_python, public)
    return f". Did you mean {' or '.join(close)}?" if close else ""

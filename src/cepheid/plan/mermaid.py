"""Text in Mermaid drawings."""

from __future__ import annotations

_ENTITIES = str.maketrans({'"': "#quot;", "#": "#35;", "`": "#96;", "<": "#lt;", ">": "#gt;"})


def label(text: str) -> str:
    """The text in the form it needs between quotes: Mermaid takes any text on one line except these characters."""
    return " ".join(text.translate(_ENTITIES).split()) or " "

"""Text in Mermaid drawings."""

from __future__ import annotations

_ENTITIES = str.maketrans({'"': "#quot;", "#": "#35;", "`": "#96;", "<": "#lt;", ">": "#gt;"})


def label(text: str) -> str:
    """The text as a label between quotes: on one line, without the characters that Mermaid does not accept there."""
    return " ".join(text.translate(_ENTITIES).split()) or " "

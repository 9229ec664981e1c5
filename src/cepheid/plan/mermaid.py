"""Text in Mermaid drawings."""

from __future__ import annotations

_ENTITIES = str.maketrans({'"': "#quot;", "#": "#35;", "`": "#96;", "<": "#lt;", ">": "#gt;"})


def label(text: str) -> str:
    """The text as it stands between quotes, where Mermaid takes any on one line but these characters."""
    return " ".join(text.translate(_ENTITIES).split()) or " "

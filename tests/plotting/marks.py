"""The marks that a picture has, as its data says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cepheid import Picture


def marks(picture: Picture, what: str) -> list[dict[str, Any]]:
    """The rows of data of one kind of marks."""
    return [row for row in values(picture) if row["what"] == what]


def values(picture: Picture) -> list[dict[str, Any]]:
    """All rows of data about events or matches."""
    found = max(picture.spec["datasets"].values(), key=len)
    return list(found)


def texts(picture: Picture, what: str, row: dict[str, Any]) -> dict[str, str]:
    """The lines of the tooltip of a mark."""
    (tooltip, *_) = (layer["encoding"]["tooltip"] for layer in _layers(picture.spec) if _shows(layer, what))
    return {line["title"]: row[line["field"]] for line in tooltip}


def _layers(spec: Any) -> Iterator[dict[str, Any]]:
    yield from spec.get("spec", spec).get("layer", [])


def _shows(layer: dict[str, Any], what: str) -> bool:
    shown = [step["filter"]["equal"] for step in layer["transform"] if isinstance(step.get("filter"), dict)]
    return what in shown and "tooltip" in layer["encoding"]

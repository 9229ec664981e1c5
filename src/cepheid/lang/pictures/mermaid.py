"""Text in Mermaid drawings, and boxes as such a drawing."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.lang.pictures.box import Box

_ENTITIES = str.maketrans({'"': "#quot;", "#": "#35;", "`": "#96;", "<": "#lt;", ">": "#gt;"})


def label(text: str) -> str:
    """The text as a label between quotes: on one line, without the characters that Mermaid does not accept there."""
    return " ".join(text.translate(_ENTITIES).split()) or " "


def mermaid_of(box: Box) -> str:
    """The picture as a Mermaid flowchart, from left to right."""
    return "\n".join(["flowchart LR", *_box(box, "n", "    ")])


def _box(box: Box, name: str, indent: str) -> Iterator[str]:
    text = "<br/>".join(map(label, (box.title, *box.lines)))
    if not box.inner:
        yield f'{indent}{name}["{text}"]'
    else:
        yield f'{indent}subgraph {name}["{text}"]'
        yield f"{indent}    direction LR"
        for number, inner in enumerate(box.inner):
            yield from _box(inner, f"{name}_{number}", f"{indent}    ")
            if inner.arrow is not None:
                yield f'{indent}    {name}_{number - 1} -->|"{label(inner.arrow)}"| {name}_{number}'
        yield f"{indent}end"
    if box.forbids:
        yield f"{indent}style {name} stroke-dasharray: 4"

"""Prometheus' text format, as the text file collector of its node exporter reads it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """A value of a metric. The metric is a counter if its name ends with `_total`, else a gauge."""

    metric: str
    labels: str
    value: int | float


def text_of(samples: Iterable[Sample]) -> str:
    """The samples, by metric, in the order in which metrics come first."""
    lines: dict[str, list[str]] = {}
    for name, labels, value in samples:
        lines.setdefault(name, []).append(f"cepheid_{name}{{{labels}}} {value}")
    return "".join(
        f"{line}\n" for name, of_name in lines.items() for line in (f"# TYPE cepheid_{name} {_kind(name)}", *of_name)
    )


def label(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{escaped}"'


def write(file: Path, text: str) -> None:
    """Replaces the file atomically, for others that read it meanwhile."""
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(text)
    draft.replace(file)


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"

"""What `repr` shows of patterns: the calls that make them, as Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from cepheid.lang.parameters import Parameter
from cepheid.lang.taxonomy import Taxonomy

_ONE_LINE = 100
_INDENT = "    "


class _Pattern(Protocol):
    """A pattern of any kind."""

    @property
    def types(self) -> Taxonomy | None: ...
    @property
    def parameters(self) -> Sequence[Parameter]: ...


def quoted(text: str) -> str:
    """The text as Python's literal, between double quotes where these need no backslash."""
    literal = repr(text)
    return literal if '"' in text else f'"{literal[1:-1]}"'


def quoted_lines(text: str) -> str:
    """As `quoted`; several lines stay lines, with others around them that do not matter."""
    if "\n" not in text or '"""' in text or "\\" in text or not text.replace("\n", "").isprintable():
        return quoted(text)
    return f'"""\n{text}\n"""'


def laid_out(calls: Sequence[str]) -> str:
    """The first call, and the calls of methods on what it makes: on one line if it is short, else a line each."""
    whole = "".join(calls)
    if len(whole) <= _ONE_LINE and "\n" not in whole:
        return whole
    return "\n".join(["(", *(_INDENT + call.replace("\n", f"\n{_INDENT}") for call in calls), ")"])


def shared_calls(pattern: _Pattern) -> Iterator[str]:
    """The calls about types and parameters."""
    if pattern.types is not None:
        kinds = {kind: above[0] if len(above) == 1 else [*above] for kind, above in pattern.types.kinds}
        yield f".taxonomy({quoted(pattern.types.column)}{f', {kinds}' if kinds else ''})"
    if pattern.parameters:
        yield f".with_parameters({', '.join(f'{one.name}={one.value!r}' for one in pattern.parameters)})"

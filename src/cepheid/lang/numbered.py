"""Texts that differ, for readers who choose among them."""

from __future__ import annotations

from collections.abc import Sequence


def with_numbers(words: Sequence[str]) -> list[str]:
    """The words, with a number where they repeat earlier ones."""
    found: dict[str, None] = {}
    for word in words:
        number, shown = 2, word
        while shown in found:
            number, shown = number + 1, f"{word} ({number})"
        found[shown] = None
    return [*found]

"""Regular expressions of XPath, in the words of Python's."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

from cepheid.knowledge.filters.values import NoValue

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_SPACES = r" \t\n\r"


@lru_cache(maxsize=1024)
def pattern(text: str, flags: str = "") -> re.Pattern[str]:
    """
    Raises:
        NoValue: the pattern or a flag is wrong, or has what Python lacks.
    """
    if unknown := set(flags) - _FLAGS.keys():
        raise NoValue(f"unknown flags {', '.join(sorted(unknown))}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(_translated(text, flags), sum(_FLAGS[flag] for flag in {*flags}))
    except (re.error, FutureWarning, DeprecationWarning) as error:
        raise NoValue(f"the pattern {text!r} is wrong: {error}") from error


def _translated(text: str, flags: str) -> str:
    """The pattern for Python. There `$` also stands before a line's end, a dot for a carriage return, too, a space is
    one of more characters, and with the flag x a `#` begins a comment.
    """
    parts, in_class = list[str](), False
    for part in re.findall(r"\\.|\(\?|.", text, re.DOTALL):
        match part:
            case "\\s" | "\\S":
                outside = f"[{_SPACES}]" if part == "\\s" else f"[^{_SPACES}]"
                if in_class and part == "\\S":
                    raise NoValue(f"the pattern {text!r} has \\S within brackets, which is not available here")
                parts.append(_SPACES if in_class else outside)
            case "\\p" | "\\P" | "\\i" | "\\I" | "\\c" | "\\C":
                raise NoValue(f"the pattern {text!r} has {part}, which is not available here")
            case "$" if not in_class and "m" not in flags:
                parts.append(r"\Z")
            case "." if not in_class and "s" not in flags:
                parts.append(r"[^\n\r]")
            case "#" if not in_class and "x" in flags:
                parts.append(r"\#")
            case "[" if in_class:
                raise NoValue(f"the pattern {text!r} subtracts classes of characters, which is not available here")
            case _:
                in_class = (in_class or part == "[") and part != "]"
                parts.append(part)
    translated = "".join(parts)
    if re.search(r"(?<!\\)\(\?(?!:)", translated):
        raise NoValue(f"the pattern {text!r} is wrong: after (? only : may follow")
    return translated


def replacement(text: str, groups: int) -> str:
    r"""What replaces a match, as Python has it. `$1` is a group, `\$` a dollar, `\\` a backslash.

    Raises:
        NoValue: it is wrong.
    """
    if re.search(r"\\(?![\\$])", re.sub(r"\\[\\$]", "", text)) or re.search(r"\$(?!\d)", re.sub(r"\\[\\$]", "", text)):
        raise NoValue(f"the replacement {text!r} is wrong")

    def translated(found: re.Match[str]) -> str:
        part = found[0]
        if part.startswith("$"):
            digits = part[1:]
            while len(digits) > 1 and int(digits) > groups:
                digits = digits[:-1]  # what follows is text
            rest = part[1 + len(digits) :]
            return (rf"\g<{int(digits)}>" if int(digits) <= groups else "") + rest
        return r"\\" if part == r"\\" else part.removeprefix("\\")

    return re.sub(r"\$\d+|\\[\\$]", translated, text)

"""LIKE, and functions of regular expressions. Patterns and replacements are constants."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.fragment import Fragment, quoted
from cepheid.hosts.duckdb.functions.java_patterns import LINE_END, Pattern, matching, spanning
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, WrongArguments, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import is_integer, is_string, sql_name


def _like(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """`value LIKE pattern [ESCAPE character]`; a backslash escapes unless another character is named."""
    _check_text(args[0], "LIKE")
    pattern, escape = _constant(args[1], "LIKE"), _escape(args[2]) if len(args) > 2 else "\\"
    if not re.fullmatch(rf"(?:[^{re.escape(escape)}]|{re.escape(escape)}[%_{re.escape(escape)}])*", pattern, re.DOTALL):
        raise WrongArguments(f"{escape!r} in a pattern of LIKE stands before %, _ or itself")
    return guarded(args[:1], f"{args[0].text} LIKE {quoted(pattern)} ESCAPE {quoted(escape)}", pa.bool_())


def _escape(arg: Fragment) -> str:
    escape = arg.literal.value if arg.literal is not None else None
    if not isinstance(escape, str) or len(escape) != 1:
        raise WrongArguments("ESCAPE takes a text of one character, as in ESCAPE '!'")
    if escape in "%_":
        raise NotInProcess(f"ESCAPE {quoted(escape)}")
    return escape


def _like_several(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`value LIKE ANY (patterns)` and `LIKE ALL`."""
    found = [_like(call, (args[0], pattern), zone) for pattern in args[1:]]
    word = " OR " if call.function == "like_any" else " AND "
    return Fragment(f"({word.join(one.text for one in found)})", pa.bool_(), raises=args[0].raises)


def _rlike(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """Whether the regular expression matches anywhere in the value."""
    _check_text(args[0], "RLIKE")
    pattern = matching(_constant(args[1], "RLIKE"))
    return guarded(args[:1], f"regexp_matches({args[0].text}, {quoted(pattern)})", pa.bool_())


def _extract(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """The group of the first match (1, if no number is given; 0 is the whole match), or ''."""
    pattern, group = _pattern(call, args), _group(call, args)
    text, group = _without_line_end(args, pattern, group)
    return guarded(args[:1], f"regexp_extract({args[0].text}, {quoted(text)}, {group})", pa.string())


def _extract_all(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    pattern, group = _pattern(call, args), _group(call, args)
    _check_repeatable(pattern)
    text, group = _without_line_end(args, pattern, group)
    found = f"regexp_extract_all({args[0].text}, {quoted(text)}, {group})"
    return guarded(args[:1], found, pa.list_(pa.string()))


def _count(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """The number of matches, one after the other."""
    pattern = _pattern(call, args)
    _check_repeatable(pattern)
    text = f"CAST(len(regexp_extract_all({args[0].text}, {quoted(pattern.text)}, 0)) AS INTEGER)"
    return guarded(args[:1], text, pa.int32())


def _substring(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """The first match; NULL if there is none."""
    pattern = _pattern(call, args)
    _check_repeatable(pattern)
    text, group = _without_line_end(args, pattern, 0)
    return guarded(args[:1], f"nullif(regexp_extract({args[0].text}, {quoted(text)}, {group}), '')", pa.string())


def _replace(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """All matches replaced; `$1` in the replacement is the first group."""
    if len(args) != 3:
        raise NotInProcess("regexp_replace from a position")
    pattern = _pattern(call, args)
    _check_repeatable(pattern)
    written = _constant(args[2], call.function)
    text, replacement = pattern.text, _replacement(written, pattern.groups)
    if pattern.ends:  # the line end after $ is no part of Java's match: it is put back
        text = f"({spanning(_before_end(args)).text})({LINE_END})\\z"
        replacement = _replacement(written, pattern.groups, before=1) + f"\\{pattern.groups + 2}"
    sql = f"regexp_replace({args[0].text}, {quoted(text)}, {quoted(replacement)}, 'g')"
    return guarded(args[:1], sql, pa.string())


def _split(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """The parts of the text between the matches of a regular expression, which is a constant."""
    pattern = _pattern(call, args)
    if len(args) == 3 and not (args[2].literal and is_integer(args[2].type) and int(str(args[2].literal.value)) <= 0):
        raise NotInProcess("split with a limit")
    _check_repeatable(pattern)
    if pattern.ends:
        raise NotInProcess("split at '$'")
    written = _constant(args[1], call.function)
    plain = not re.search(r"[\\\[\](){}.*+?^$|]", written)
    function = "string_split" if plain else "string_split_regex"
    text = f"{function}({args[0].text}, {quoted(written if plain else pattern.text)})"
    return guarded(args[:1], text, pa.list_(pa.string()))


def _pattern(call: Call, args: Sequence[Fragment]) -> Pattern:
    if len(args) < 2:
        raise WrongArguments(f"{call.function} takes a STRING and a pattern, got {len(args)} arguments")
    _check_text(args[0], call.function)
    return spanning(_constant(args[1], call.function))


def _group(call: Call, args: Sequence[Fragment]) -> int:
    """The number of the group that is asked for."""
    literal = args[2].literal if len(args) > 2 else None
    if len(args) > 2 and (literal is None or not is_integer(literal.type)):
        raise NotInProcess(f"{call.function} with a group that is not a constant")
    group = int(str(literal.value)) if literal else 1
    groups = _pattern(call, args).groups
    if not 0 <= group <= groups:
        raise WrongArguments(f"{call.function} of group {group}: the pattern has {groups}. 0 is the whole match")
    return group


def _without_line_end(args: Sequence[Fragment], pattern: Pattern, group: int) -> tuple[str, int]:
    """The pattern and group for a match without the line end that `$` allows."""
    if group or not pattern.ends:
        return pattern.text, group
    return f"({spanning(_before_end(args)).text}){LINE_END}\\z", 1


def _before_end(args: Sequence[Fragment]) -> str:
    """The Java pattern before its `$`, which must be its last character."""
    pattern = _constant(args[1], "")
    if not pattern.endswith("$") or spanning(pattern[:-1]).ends or "|" in pattern:
        raise NotInProcess("'$' before the end of a regular expression whose match is taken")
    return pattern[:-1]


def _check_repeatable(pattern: Pattern) -> None:
    if pattern.nullable:
        raise NotInProcess("all matches of a pattern that matches the empty text")


def _replacement(written: str, groups: int, before: int = 0) -> str:
    r"""Java's replacement as RE2's: `$1` is `\1`, or a later one if the pattern has more groups before it. A backslash
    makes any character plain.
    """
    text, position = "", 0
    for part in re.finditer(r"\$([0-9])(?![0-9])|\\(.)|[^$\\]", written, re.DOTALL):
        if part.start() != position:
            break
        position = part.end()
        group, plain = part.groups()
        if group is not None and int(group) > groups:
            break
        text += f"\\{int(group) + before}" if group else (plain or part.group()).replace("\\", "\\\\")
    if position != len(written) or groups + before > 8:
        raise NotInProcess(f"the replacement {written!r}")
    return text


def _check_text(value: Fragment, word: str) -> None:
    if not (is_string(value.type) or arrow.is_null(value.type)):
        raise WrongArguments(f"{word} takes STRING, got {sql_name(value.type)}")


def _constant(arg: Fragment, word: str) -> str:
    if arg.literal is None or not isinstance(arg.literal.value, str):
        raise NotInProcess(f"{word} with a pattern that is not a constant")
    return arg.literal.value


PATTERNS: dict[str, Rule] = {
    "like": _like,
    **dict.fromkeys(("like_any", "like_all"), _like_several),
    **dict.fromkeys(("rlike", "regexp_like"), _rlike),
    "regexp_extract": _extract,
    "regexp_extract_all": _extract_all,
    "regexp_count": _count,
    "regexp_substr": _substring,
    "regexp_replace": _replace,
    "split": _split,
}

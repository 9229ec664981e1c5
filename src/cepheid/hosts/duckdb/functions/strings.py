"""Functions of text whose arguments are of several types, or constants that choose what is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.casts import Mode, cast
from cepheid.hosts.duckdb.fragment import Fragment, quoted, widened
from cepheid.hosts.duckdb.functions.texts import LOWER_DIFFERS, UPPER_DIFFERS
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, WrongArguments, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import is_binary, is_list, is_string, sql_name


def _concat(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """Joined texts, or joined arrays of one type. NULL if one of them is NULL."""
    if args and all(is_list(arg.type) for arg in args):
        return _joined_arrays(call, args)
    if any(is_binary(arg.type) for arg in args):
        raise NotInProcess(f"{call.function} of BINARY")
    texts = [_text(call, arg, zone) for arg in args]
    if not texts:
        raise WrongArguments(f"{call.function} takes one value or more")
    return guarded(texts, " || ".join(text.text for text in texts), pa.string())


def _joined_arrays(call: Call, args: Sequence[Fragment]) -> Fragment:
    if len({arg.type for arg in args}) > 1:
        raise NotInProcess(f"{call.function} of arrays of several types")
    text = args[0].text
    for arg in args[1:]:
        text = f"list_concat({text}, {arg.text})"
    nulls = " OR ".join(f"{arg.text} IS NULL" for arg in args)
    return guarded(args, f"CASE WHEN {nulls} THEN NULL ELSE {text} END", args[0].type)


def _text(call: Call, arg: Fragment, zone: str) -> Fragment:
    if is_list(arg.type) or arrow.is_map(arg.type) or arrow.is_struct(arg.type):
        raise WrongArguments(f"{call.function} of {sql_name(arg.type)} and other values")
    return cast(arg, pa.string(), zone, Mode.STRICT)


def _concat_ws(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The first argument separates the others: texts and arrays of texts. NULLs are left out."""
    if not args:
        raise WrongArguments("concat_ws takes a separator and the values")
    separator, *others = (arg if is_list(arg.type) else _text(call, arg, zone) for arg in args)
    separator = replace(separator, literal=args[0].literal)
    if is_list(separator.type) or any(is_list(arg.type) and not is_string(arg.type.value_type) for arg in others):
        raise WrongArguments("concat_ws takes a separator, and texts or arrays of texts")
    raises = any(arg.raises for arg in args)
    if not any(is_list(arg.type) for arg in others):
        joined = f"concat_ws({', '.join(arg.text for arg in (separator, *others))})"
        # DuckDB needs a value after the separator, and Spark does not.
        text = joined if others else f"CASE WHEN {separator.text} IS NOT NULL THEN '' END"
        return Fragment(text, pa.string(), raises=raises)
    lists = [f"coalesce({arg.text}, [])" if is_list(arg.type) else f"[{arg.text}]" for arg in others]
    joined = lists[0]
    for one in lists[1:]:
        joined = f"list_concat({joined}, {one})"
    if separator.literal is None or not isinstance(separator.literal.value, str):
        raise NotInProcess("concat_ws of arrays with a separator that is not a constant")
    return Fragment(f"coalesce(array_to_string({joined}, {separator.text}), '')", pa.string(), raises=raises)


def _sha2(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """SHA-256; other lengths need Spark."""
    value, bits = args
    number = bits.literal.value if bits.literal else None
    if not isinstance(number, int) or number not in (0, 256):
        raise NotInProcess("sha2 of other than 256 bits")
    text = value if is_binary(value.type) else widened(value, pa.string(), zone)
    if text is None:
        raise WrongArguments(f"sha2 takes STRING or BINARY, got {sql_name(value.type)}")
    return guarded([text], f"sha256({text.text})", pa.string())


def _substring_index(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """The text before that many delimiters or, if the count is negative, after that many from the end."""
    value, delimiter, count = args
    mark = delimiter.literal.value if delimiter.literal else None
    number = count.literal.value if count.literal and count.type == pa.int32() else None
    if not is_string(value.type):
        raise WrongArguments(f"substring_index takes a STRING, got {sql_name(value.type)}")
    if not isinstance(mark, str) or len(mark) != 1 or not isinstance(number, int):
        raise NotInProcess("substring_index with other than a constant of one character and a constant count")
    parts = f"string_split({value.text}, {quoted(mark)})[{f'1:{number}' if number > 0 else f'{number}:'}]"
    text = f"array_to_string({parts}, {quoted(mark)})" if number else f"CASE WHEN {value.text} IS NOT NULL THEN '' END"
    return guarded([value], text, pa.string())


def _trim_from(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`trim(BOTH characters FROM text)`; also LEADING and TRAILING, and without characters."""
    side, *characters, value = args
    assert side.literal is not None
    function = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}[str(side.literal.value)]
    text = widened(value, pa.string(), zone)
    removed = widened(characters[0], pa.string(), zone) if characters else Fragment("' '", pa.string())
    if text is None or removed is None:
        raise WrongArguments("trim takes STRINGs")
    return guarded((text, removed), f"{function}({text.text}, {removed.text})", pa.string())


def _initcap(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """Each word between spaces with a capital, the rest of it in small letters."""
    (value,) = args
    text = widened(value, pa.string(), zone)
    if text is None:
        raise WrongArguments(f"initcap takes STRING, got {sql_name(value.type)}")
    word = "upper(substring(w, 1, 1)) || lower(substring(w, 2))"
    words = f"array_to_string(list_transform(string_split({text.text}, ' '), lambda w: {word}), ' ')"
    return guarded(
        [text], _with_known_case(call, text.text, words, UPPER_DIFFERS + LOWER_DIFFERS), pa.string(), fails=True
    )


def _ilike(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """LIKE of both in small letters."""
    value, pattern = args[:2]
    if len(args) > 2 or pattern.literal is None or not isinstance(pattern.literal.value, str):
        raise NotInProcess("ILIKE with ESCAPE, or with a pattern that is not a constant")
    text = widened(value, pa.string(), zone)
    if text is None:
        raise WrongArguments(f"ILIKE takes STRING, got {sql_name(value.type)}")
    written = pattern.literal.value
    if not written.isascii() or "\\" in written:
        raise NotInProcess("ILIKE with a pattern that is not ASCII, or has a backslash")
    like = f"lower({text.text}) LIKE {quoted(written.lower())} ESCAPE '\\'"
    return guarded([text], _with_known_case(call, text.text, like, LOWER_DIFFERS, "BOOLEAN"), pa.bool_(), fails=True)


def _with_known_case(call: Call, text: str, sql: str, differs: str, type_: str = "VARCHAR") -> str:
    """`sql`, which fails for texts with characters whose case differs from Java's."""
    error = f"error('{call.function} of a character whose case differs here; it is available on Spark')"
    return f"CASE WHEN regexp_matches({text}, '[{differs}]') THEN CAST({error} AS {type_}) ELSE {sql} END"


STRINGS: dict[str, Rule] = {
    "concat": _concat,
    "concat_ws": _concat_ws,
    "sha2": _sha2,
    "substring_index": _substring_index,
    "trim_from": _trim_from,
    "initcap": _initcap,
    "ilike": _ilike,
}

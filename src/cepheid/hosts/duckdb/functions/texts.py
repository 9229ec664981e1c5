"""Functions of text. Characters are Unicode code points on both sides."""

from __future__ import annotations

from cepheid.hosts.duckdb.functions.function import Function, same

# Characters whose upper or lower case differs between Spark's Unicode 16 and DuckDB's tables, or depends on the
# neighbours; found by comparing every code point.
UPPER_DIFFERS = (
    "ßŉƛǰɤΐΰև\u1c8aẖ-ẚὐὒὔὖᾀ-ᾯᾲ-ᾴᾶᾷᾼῂ-ῄῆῇῌῒΐῖῗῢ-ῤῦῧῲ-ῴῶῷῼ\ua7cd\ua7cf\ua7d3\ua7d5\ua7db"
    "ﬀ-ﬆﬓ-ﬗ\U00010d70-\U00010d85\U00016ebb-\U00016ed3"
)
LOWER_DIFFERS = "İΣ\u1c89\ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc\U00010d50-\U00010d65\U00016ea0-\U00016eb8"


def _cased(name: str, function: str, differs: str) -> Function:
    error = f"error('{name} of a character whose case differs here; it is available on Spark')"
    sql = f"CASE WHEN regexp_matches({{0}}, '[{differs}]') THEN CAST({error} AS VARCHAR) ELSE {function}({{0}}) END"
    notes = "Fails on the few characters whose case depends on the Unicode version or on neighbours (such as ß and Σ)."
    return Function(name, ("STRING",), "STRING", sql, notes, fails=True)


def _padding(name: str) -> tuple[Function, ...]:
    sql, notes = f"{name}({{0}}, {_NOT_NEGATIVE % (1, 1)}, %s)", "The padding is a constant, not empty."
    return (
        Function(name, ("STRING", "INT", "STRING"), "STRING", sql % "{2}", notes, constants=(2,)),
        Function(name, ("STRING", "INT"), "STRING", sql % "' '"),
    )


_NOT_NEGATIVE = "CASE WHEN {%d} < 0 THEN 0 ELSE {%d} END"
_BYTES = ("STRING", "BINARY")
_PART = "substring({0}, CASE WHEN {1} = 0 THEN 1 ELSE {1} END, CASE WHEN {2} < 0 THEN 0 ELSE {2} END)"
_LOCATED = (
    "CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL THEN NULL WHEN {1} IS NULL THEN NULL "
    "WHEN {2} < 1 THEN 0 WHEN {0} = '' THEN 1 "
    "WHEN instr(substring({1}, {2}), {0}) = 0 THEN 0 "
    "ELSE CAST(instr(substring({1}, {2}), {0}) + {2} - 1 AS INTEGER) END"
)
_REST = "substring({0}, CASE WHEN {1} = 0 THEN 1 ELSE {1} END, 2147483647)"
_START = "CASE WHEN {1} = 0 THEN 1 ELSE {1} END"


TEXTS: tuple[Function, ...] = (
    _cased("upper", "upper", UPPER_DIFFERS),
    _cased("ucase", "upper", UPPER_DIFFERS),
    _cased("lower", "lower", LOWER_DIFFERS),
    _cased("lcase", "lower", LOWER_DIFFERS),
    *same(
        "length char_length character_length len",
        ("STRING",),
        "INT",
        "CAST(length({0}) AS INTEGER)",
        "Characters, not bytes.",
    ),
    Function("octet_length", ("STRING",), "INT", "CAST(strlen({0}) AS INTEGER)", "Bytes of UTF-8."),
    Function("bit_length", ("STRING",), "INT", "CAST(strlen({0}) * 8 AS INTEGER)"),
    *same("trim btrim", ("STRING",), "STRING", "trim({0}, ' ')", "Spaces only, as in Spark."),
    Function("ltrim", ("STRING",), "STRING", "ltrim({0}, ' ')", "Spaces only."),
    Function("rtrim", ("STRING",), "STRING", "rtrim({0}, ' ')", "Spaces only."),
    *same(
        "substring substr",
        ("STRING", "INT", "INT"),
        "STRING",
        f"substring({{0}}, {_START}, {_NOT_NEGATIVE % (2, 2)})",
        "Counts from 1; 0 is taken as 1; a negative position counts from the end.",
    ),
    *same("substring substr", ("STRING", "INT"), "STRING", _REST),
    Function("left", ("STRING", "INT"), "STRING", f"left({{0}}, {_NOT_NEGATIVE % (1, 1)})"),
    Function("right", ("STRING", "INT"), "STRING", f"right({{0}}, {_NOT_NEGATIVE % (1, 1)})"),
    Function("startswith", ("STRING", "STRING"), "BOOLEAN", "starts_with({0}, {1})"),
    Function("endswith", ("STRING", "STRING"), "BOOLEAN", "ends_with({0}, {1})"),
    Function("contains", ("STRING", "STRING"), "BOOLEAN", "contains({0}, {1})"),
    Function(
        "instr", ("STRING", "STRING"), "INT", "CAST(instr({0}, {1}) AS INTEGER)", "From 1; 0 if it is not contained."
    ),
    Function("locate", ("STRING", "STRING"), "INT", "CAST(instr({1}, {0}) AS INTEGER)"),
    Function("position", ("STRING", "STRING"), "INT", "CAST(instr({1}, {0}) AS INTEGER)"),
    Function("replace", ("STRING", "STRING", "STRING"), "STRING", "replace({0}, {1}, {2})"),
    *_padding("lpad"),
    *_padding("rpad"),
    Function(
        "split_part",
        ("STRING", "STRING", "INT"),
        "STRING",
        "split_part({0}, {1}, {2})",
        "The delimiter and the number are constants, not empty and not 0.",
        constants=(1, 2),
    ),
    Function("ascii", ("STRING",), "INT", "CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END"),
    Function("reverse", ("STRING",), "STRING", "array_to_string(list_reverse(string_split({0}, '')), '')"),
    Function("repeat", ("STRING", "INT"), "STRING", "repeat({0}, {1})"),
    Function("space", ("INT",), "STRING", "repeat(' ', {0})"),
    Function("translate", ("STRING", "STRING", "STRING"), "STRING", "translate({0}, {1}, {2})"),
    Function(
        "locate",
        ("STRING", "STRING", "START"),
        "INT",
        _LOCATED,
        "From the position on, which counts from 1.",
        is_in_order=True,
    ),
    Function("position", ("STRING", "STRING", "START"), "INT", _LOCATED, is_in_order=True),
    Function("position_from", ("STRING", "STRING"), "INT", "CAST(instr({1}, {0}) AS INTEGER)"),
    Function("substring_from", ("STRING", "INT", "INT"), "STRING", _PART),
    Function("substring_from", ("STRING", "INT"), "STRING", _REST),
    Function("substr_from", ("STRING", "INT", "INT"), "STRING", _PART),
    Function("substr_from", ("STRING", "INT"), "STRING", _REST),
    # digests and encodings
    *(Function("md5", (kind,), "STRING", "md5({0})") for kind in _BYTES),
    *(way for kind in _BYTES for way in same("sha1 sha", (kind,), "STRING", "sha1({0})")),
    Function("base64", ("BINARY",), "STRING", "to_base64({0})"),
    Function("base64", ("STRING",), "STRING", "to_base64(encode({0}))"),
    Function("hex", ("STRING",), "STRING", "hex({0})"),
    Function("hex", ("BINARY",), "STRING", "hex({0})"),
)

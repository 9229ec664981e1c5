"""The functions that are available in process: one entry each, with the DuckDB SQL that gives Spark's result exactly.

`tests/hosts/test_functions_against_spark.py` compares the values, types and failures of every entry with Spark. The
page `docs/reference/functions.md` is generated from here. Functions with different results have no entry: for example
exp, ln, pow and the trigonometric functions, because Java and C round the last digit differently (measured: in 5 % of
exp's results).
"""

from __future__ import annotations

from dataclasses import dataclass

# Characters whose upper or lower case differs between Spark's Unicode 16 and DuckDB's tables, or depends on the
# neighbours; found by comparing every code point.
UPPER_DIFFERS = (
    "ßŉƛǰɤΐΰև\u1c8aẖ-ẚὐὒὔὖᾀ-ᾯᾲ-ᾴᾶᾷᾼῂ-ῄῆῇῌῒΐῖῗῢ-ῤῦῧῲ-ῴῶῷῼ\ua7cd\ua7cf\ua7d3\ua7d5\ua7db"
    "ﬀ-ﬆﬓ-ﬗ\U00010d70-\U00010d85\U00016ebb-\U00016ed3"
)
LOWER_DIFFERS = "İΣ\u1c89\ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc\U00010d50-\U00010d65\U00016ea0-\U00016eb8"


@dataclass(frozen=True)
class Function:
    """One way to call a function.

    `takes` names Spark types, or kinds: INTEGER and FLOATING (any such type; the same word in `gives` means the same
    type), ARRAY, LOCAL (a TIMESTAMP on the session's clock, a TIMESTAMP_NTZ, a DATE at midnight). `sql` has {0}, {1}, …
    for the arguments. `constants` are the arguments that must be constants: not NULL, not empty, not 0.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    notes: str = ""
    fails: bool = False
    constants: tuple[int, ...] = ()


def _same(names: str, takes: tuple[str, ...], gives: str, sql: str, notes: str = "") -> tuple[Function, ...]:
    first, *others = names.split()
    return (
        Function(first, takes, gives, sql, notes),
        *(Function(name, takes, gives, sql, f"The same as `{first}`.") for name in others),
    )


def _cased(name: str, function: str, differs: str) -> Function:
    error = f"error('{name} of a character whose case differs here; it is available on Spark')"
    sql = f"CASE WHEN regexp_matches({{0}}, '[{differs}]') THEN CAST({error} AS VARCHAR) ELSE {function}({{0}}) END"
    notes = "Fails on the few characters whose case depends on the Unicode version or on neighbours (such as ß and Σ)."
    return Function(name, ("STRING",), "STRING", sql, notes, fails=True)


def _whole(name: str, function: str) -> tuple[Function, ...]:
    double = f"CASE WHEN isnan({{0}}) THEN CAST(0 AS BIGINT) ELSE CAST({function}({{0}}) AS BIGINT) END"
    return (
        Function(name, ("BIGINT",), "BIGINT", "{0}"),
        Function(name, ("DOUBLE",), "BIGINT", double, "NaN gives 0; overflow fails.", fails=True),
    )


def _clock(name: str, part: str, notes: str = "") -> Function:
    return Function(name, ("LOCAL",), "INT", f"CAST({part}({{0}}) AS INTEGER)", notes)


def _calendar(names: str, sql: str, notes: str = "") -> tuple[Function, ...]:
    return _same(names, ("DATE",), "INT", f"CAST({sql} AS INTEGER)", notes)


def _padding(name: str) -> tuple[Function, ...]:
    sql, notes = f"{name}({{0}}, {_NOT_NEGATIVE % (1, 1)}, %s)", "The padding is a constant, not empty."
    return (
        Function(name, ("STRING", "INT", "STRING"), "STRING", sql % "{2}", notes, constants=(2,)),
        Function(name, ("STRING", "INT"), "STRING", sql % "' '"),
    )


_NOT_NEGATIVE = "CASE WHEN {%d} < 0 THEN 0 ELSE {%d} END"
_START = "CASE WHEN {1} = 0 THEN 1 ELSE {1} END"

FUNCTIONS: tuple[Function, ...] = (
    # numbers
    *_whole("ceil", "ceil"),
    *_whole("ceiling", "ceil"),
    *_whole("floor", "floor"),
    Function("sqrt", ("DOUBLE",), "DOUBLE", "CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END"),
    *_same(
        "sign signum",
        ("DOUBLE",),
        "DOUBLE",
        "CASE WHEN {0} < 0 THEN CAST(-1 AS DOUBLE) WHEN {0} = 0 OR isnan({0}) THEN {0} "
        "WHEN {0} > 0 THEN CAST(1 AS DOUBLE) END",
    ),
    Function("rint", ("DOUBLE",), "DOUBLE", "round_even({0}, 0)", "Halves go to the even neighbour."),
    Function("isnan", ("FLOATING",), "BOOLEAN", "coalesce(isnan({0}), FALSE)", "NULL gives false."),
    Function("nanvl", ("DOUBLE", "DOUBLE"), "DOUBLE", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END"),
    Function("positive", ("INTEGER",), "INTEGER", "{0}"),
    Function("positive", ("DOUBLE",), "DOUBLE", "{0}"),
    # strings; characters are Unicode code points on both sides
    _cased("upper", "upper", UPPER_DIFFERS),
    _cased("ucase", "upper", UPPER_DIFFERS),
    _cased("lower", "lower", LOWER_DIFFERS),
    _cased("lcase", "lower", LOWER_DIFFERS),
    *_same(
        "length char_length character_length len",
        ("STRING",),
        "INT",
        "CAST(length({0}) AS INTEGER)",
        "Characters, not bytes.",
    ),
    Function("octet_length", ("STRING",), "INT", "CAST(strlen({0}) AS INTEGER)", "Bytes of UTF-8."),
    Function("bit_length", ("STRING",), "INT", "CAST(strlen({0}) * 8 AS INTEGER)"),
    *_same("trim btrim", ("STRING",), "STRING", "trim({0}, ' ')", "Spaces only, as in Spark."),
    Function("ltrim", ("STRING",), "STRING", "ltrim({0}, ' ')", "Spaces only."),
    Function("rtrim", ("STRING",), "STRING", "rtrim({0}, ' ')", "Spaces only."),
    *_same(
        "substring substr",
        ("STRING", "INT", "INT"),
        "STRING",
        f"substring({{0}}, {_START}, {_NOT_NEGATIVE % (2, 2)})",
        "Counts from 1; 0 is taken as 1; a negative position counts from the end.",
    ),
    *_same("substring substr", ("STRING", "INT"), "STRING", f"substring({{0}}, {_START})"),
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
    # dates and times
    *_calendar("year", "year({0})"),
    *_calendar("quarter", "quarter({0})"),
    *_calendar("month", "month({0})"),
    *_calendar("day dayofmonth", "day({0})"),
    *_calendar("dayofweek", "dayofweek({0}) + 1", "1 is Sunday."),
    *_calendar("weekday", "isodow({0}) - 1", "0 is Monday."),
    *_calendar("dayofyear", "dayofyear({0})"),
    *_calendar("weekofyear", "weekofyear({0})", "ISO weeks."),
    _clock("hour", "hour"),
    _clock("minute", "minute"),
    _clock("second", "second"),
    Function("last_day", ("DATE",), "DATE", "last_day({0})"),
    Function("to_date", ("DATE",), "DATE", "{0}", "From text: on Spark only."),
    *_same("date_add dateadd", ("DATE", "INT"), "DATE", "({0} + {1})"),
    Function("date_sub", ("DATE", "INT"), "DATE", "({0} - {1})"),
    *_same(
        "datediff date_diff", ("DATE", "DATE"), "INT", "CAST({0} - {1} AS INTEGER)", "From the second to the first."
    ),
    Function(
        "add_months",
        ("DATE", "INT"),
        "DATE",
        "CAST({0} + to_months({1}) AS DATE)",
        "If the month is too short for the day, its last day.",
    ),
    Function(
        "unix_timestamp", ("TIMESTAMP",), "BIGINT", "epoch_us({0}) // 1000000", "Rounds towards 1970, as Spark does."
    ),
    Function(
        "unix_seconds", ("TIMESTAMP",), "BIGINT", "epoch_us(date_trunc('second', {0})) // 1000000", "Rounds down."
    ),
    Function("unix_millis", ("TIMESTAMP",), "BIGINT", "epoch_us(date_trunc('millisecond', {0})) // 1000"),
    Function("unix_micros", ("TIMESTAMP",), "BIGINT", "epoch_us({0})"),
    Function("unix_date", ("DATE",), "INT", "CAST({0} - CAST('1970-01-01' AS DATE) AS INTEGER)"),
    # arrays
    *_same("size cardinality array_size", ("ARRAY",), "INT", "CAST(len({0}) AS INTEGER)", "NULL for a NULL array."),
)

BY_NAME: dict[str, list[Function]] = {}
for _function in FUNCTIONS:
    BY_NAME.setdefault(_function.name, []).append(_function)

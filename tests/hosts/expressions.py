"""The expressions for which the engine in process is compared with Spark."""

from __future__ import annotations

from cepheid.hosts.duckdb.lists import LONG
from cepheid.lang.parameters import string_literal
from cepheid.plan.semantics.name_lists import MARK

_NUMERIC = ["i8", "i16", "i32", "i64", "f32", "f64", "d9", "d18"]
_COMPARED = ["=", "<=>", "!=", "<", "<=", ">", ">="]
_SECOND = {"i32": "j32", "i64": "j64", "f64": "g64"}


_TOO_LONG = {("*", "i64", "d18"), ("*", "d18", "j64")}
"""Results of 39 digits."""


def _arithmetic() -> list[str]:
    pairs = [(a, _SECOND.get(b, b)) for a in _NUMERIC for b in _NUMERIC]
    exact = [(a, b) for a, b in pairs if "d" not in a + b or "f" in a + b]
    return [
        *(
            f"{a} {op} {b}"
            for i, (a, b) in enumerate(pairs)
            for op in ("+-*" if i % 9 == 0 else "+-*"[i % 3])
            if (op, a, b) not in _TOO_LONG
        ),
        *(f"{a} {op} {b}" for a, b in exact for op in "/%"),
        *(f"{a} div {b}" for a, b in exact if a[0] + b[0] in ("ii", "ij")),
        *(f"{f}({a})" for a in _NUMERIC for f in ("abs", "-")),
        "i32 / 2",
        "i32 % 3",
        "i64 div 7",
        "i64 div -1",
        "i32 % -1",
        "i64 % -1",
        "d9 + 1",
        "d9 * 2",
        "i32 + 1.5",
        "i32 * 1.1",
        "i64 * 1.1",
        "f64 / 0",
        "i32 / NULL",
        "f64 / 2.5",
        "-f64 / 3",
        "NULL + 1",
        "d38 = d9",
        "d38 > 1",
    ]


def _comparisons() -> list[str]:
    pairs = [
        *((a, _SECOND.get(b, b)) for a in _NUMERIC for b in _NUMERIC),
        ("s", "s2"),
        ("b", "c"),
        ("dt", "dt2"),
        ("ts", "ts2"),
        ("dt", "ts"),
        ("ntz", "dt"),
        ("ts", "ntz"),
    ]
    return [
        *(f"{a} {op} {b}" for i, (a, b) in enumerate(pairs) for op in (_COMPARED if i > 60 else _COMPARED[i % 7 :: 3])),
        "i32 = 5",
        "d9 = 1",
        "d9 > 0.5",
        "f64 > 1.5",
        "i32 > 1.5",
        "i64 > 9007199254740992",
        "s > 'a'",
        "s = NULL",
        "NULL <=> NULL",
        "dt >= '2020-01-01'",
        "ts < '2020-02-29 12:30:45'",
        "ts >= TIMESTAMP '2020-02-29 00:00:00'",
        "ntz = TIMESTAMP_NTZ '2021-03-28 02:30:00'",
        "dt = DATE '2020-02-29'",
        "f64 = g64",
        "st.x = 1",
        "st.t > ts",
        "i32 BETWEEN -7 AND j32",
        "f64 BETWEEN g64 AND 100",
        "s BETWEEN 'a' AND 'b'",
        "i32 NOT BETWEEN 0 AND 10",
        "dt BETWEEN '2000-01-01' AND '2020-12-31'",
        "i32 IN (1, 2, 100)",
        "i32 IN (1, NULL)",
        "i32 IN (1, 1.5)",
        "s IN ('a', 'abc', '')",
        "s NOT IN ('a')",
        "f64 IN (0, 1.5D)",
        "f64 IN (g64)",
        "dt IN ('2020-02-29')",
        "i8 IN (i64)",
        "s IS NULL",
        "s IS NOT NULL",
        "isnull(f64)",
        "isnotnull(f64)",
        "b IS TRUE",
        "b IS NOT FALSE",
        "b IS UNKNOWN",
        "i32 IS DISTINCT FROM j32",
    ]


_LOGIC = [
    "b AND c",
    "b OR c",
    "NOT b",
    "b AND NULL",
    "b OR NULL",
    "NOT NULL",
    "b AND c AND i32 > 0",
    "b OR c OR i32 > 0",
    "n != 0 AND 10 / n > 1",
    "n = 0 OR 10 / n > 1",
    "10 / n > 1 AND n != 0",
    "b AND (c OR 10 / n > 1)",
    "i32 + 1 > 5",
    "NOT (n = 0) AND i32 % n = 1",
    "b AND 10 / n > 1 AND 5 / n < 3",
    "i32 + (10 / n) > 0",
    "(10 / n) + i32 > 0",
    "i32 * (10 div n) > 0",
    "(1 div n) / f64",
    "f64 / (1 div n)",
    "i32 = (10 div n)",
    "i32 <=> cast(10 div n as int)",
    "CASE WHEN n = 0 THEN 0 ELSE 10 / n END",
    "CASE WHEN b THEN 1 WHEN c THEN 2 END",
    "CASE n WHEN 1 THEN 'one' ELSE s END",
    "CASE WHEN b THEN i32 ELSE f64 END",
    "CASE WHEN b THEN i32 ELSE 1.5 END",
    "CASE WHEN b THEN dt ELSE ts END",
    "CASE n WHEN 0 THEN 1 WHEN 10 div n THEN 2 END",
    "if(b, i32, i64)",
    "if(n = 0, NULL, 10 / n)",
    "if(b, NULL, s)",
    "coalesce(i32, j32, 0)",
    "coalesce(s, 'none')",
    "coalesce(i32, 10 / n)",
    "coalesce(d9, 1)",
    "nvl(i32, 0)",
    "ifnull(f64, i32)",
    "nvl2(s, 1, 2)",
    "nullif(i32, j32)",
    "nullif(s, '')",
    "nullif(f64, g64)",
    "nullif(i32, 1.5)",
    "greatest(i32, j32)",
    "greatest(f64, g64)",
    "least(f64, g64)",
    "greatest(i32, f64, 1)",
    "least(s, s2, 'm')",
    "greatest(i32, NULL)",
    "least(dt, dt2)",
    "greatest(ts, dt)",
    "least(d9, i32)",
    "greatest(b, c)",
    "least(i32, 10 / n)",
    "greatest(f32, f64)",
    "least(f64, 0)",
]

_NUMBER_FUNCTIONS = [
    *(f"{f}({c})" for f in ("ceil", "ceiling", "floor") for c in ("f64", "f32", "i32", "i64")),
    *(f"{f}({c})" for f in ("sqrt", "sign", "signum", "rint") for c in ("f64", "f32", "i32", "d9", "d18")),
    *(f"round({c})" for c in ("i8", "i16", "i32", "i64", "f64")),
    "isnan(f64)",
    "isnan(f32)",
    "nanvl(f64, g64)",
    "nanvl(f64, 0)",
    "positive(i32)",
    "+f64",
    "nanvl(f64, 10 / n)",
]

_TEXT_FUNCTIONS = [
    *(f"{f}({c})" for f in ("upper", "lower", "ucase", "lcase") for c in ("s",)),
    *(f"{f}(s)" for f in ("length", "char_length", "character_length", "len", "octet_length", "bit_length")),
    *(f"{f}(s)" for f in ("trim", "btrim", "ltrim", "rtrim")),
    "substring(s, n, 2)",
    "substr(s, n, n)",
    "substring(s, 2)",
    "substring(s, n)",
    "substr(s, n)",
    "substring(s, 0, 2)",
    "substring(s, -2, 1)",
    "substring(s, n, 2147483647)",
    "substring(s, i32, j32)",
    "left(s, n)",
    "right(s, n)",
    "left(s, i32)",
    "right(s, j32)",
    "concat(s, s2)",
    "concat(s, NULL)",
    "s || 'x' || s2",
    "concat_ws('-', s, s2)",
    "concat_ws(s, s2)",
    "concat_ws(NULL, s)",
    "concat(s)",
    "concat_ws(',', s, '', s2)",
    *(f"{f}(s, s2)" for f in ("startswith", "endswith", "contains", "instr", "locate", "position")),
    "contains(s, '')",
    "instr(s, '')",
    "replace(s, 'a', 'xy')",
    "replace(s, s2, '-')",
    "replace(s, '', 'x')",
    "lpad(s, n, '*')",
    "rpad(s, n, 'xy')",
    "lpad(s, 5, 'xyz')",
    "lpad(s, n)",
    "rpad(s, 6)",
    "lpad(s, 7, '日本')",
    "split_part(s, ',', 1)",
    "split_part(s, ',', 3)",
    "split_part(s, ',', -1)",
    "split_part(s, ',', 9)",
    "split_part(s, 'a', 2)",
    "s LIKE 'a%'",
    "s LIKE '%c'",
    "s LIKE 'a_c'",
    r"s LIKE 'a\\_c'",
    r"s LIKE '%\\%%'",
    r"s LIKE 'a\\\\c'",
    "s LIKE ''",
    "s LIKE 'a!_c' ESCAPE '!'",
    "s NOT LIKE '%b%'",
    "s LIKE '_'",
    "s LIKE '%'",
    "s LIKE 'x_y'",
    "s LIKE '日%'",
    "s RLIKE 'b'",
    "s RLIKE '^a'",
    "s RLIKE 'c$'",
    r"s RLIKE r'\d'",
    r"s RLIKE r'^\w+$'",
    "s RLIKE '^[a-c]+$'",
    "s RLIKE 'a.c'",
    "s RLIKE '^(a|ab)+b?$'",
    "s RLIKE 'a{2}'",
    r"s RLIKE r'\s'",
    "s RLIKE '[^a-z]'",
    "s RLIKE '^.$'",
    "s RLIKE '日本?'",
    "s RLIKE 'x.y'",
    r"s RLIKE r'^a\.?'",
    "s RLIKE '[-_%]'",
    "regexp_like(s, 'b')",
    "s RLIKE ''",
    "s RLIKE '.$'",
]

_TIME_FUNCTIONS = [
    *(
        f"{f}(dt)"
        for f in ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear", "weekofyear")
    ),
    "last_day(dt)",
    "to_date(ts)",
    "to_date(dt)",
    "date_add(dt2, n)",
    "dateadd(dt2, n)",
    "date_sub(dt2, n)",
    "datediff(dt, dt2)",
    "date_diff(dt, ts)",
    "add_months(dt2, n)",
    "unix_date(dt)",
    "datediff(dt, '2020-01-01')",
    "year('2020-02-29')",
    "unix_timestamp(ts)",
    "unix_seconds(ts)",
    "unix_millis(ts)",
    "unix_micros(ts)",
    "hour(ntz)",
    "minute(ntz)",
    "second(ntz)",
    *(f"trunc(dt, '{u}')" for u in ("year", "YYYY", "quarter", "MM", "mon", "week")),
    "ts + INTERVAL 90 MINUTES",
    "ts - INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "INTERVAL 1 DAY + ts",
    "ts - INTERVAL 3 DAYS",
    "ts - ts2",
    "ts - ts2 > INTERVAL 1 HOUR",
    "ntz + INTERVAL 1 SECOND",
    "ntz - ts",
    "ts2 < ts - INTERVAL 5 MINUTES",
    "INTERVAL 1 HOUR + INTERVAL 5 MINUTES < ts - ts2",
    "-(ts - ts2)",
    "abs(ts - ts2)",
    "size(arr)",
    "cardinality(arr)",
    "array_size(arr)",
    "size(arr) > 1",
    "-INTERVAL 1 HOUR",
    "ts - ts2 BETWEEN INTERVAL 0 SECONDS AND INTERVAL 12 HOURS",
    "coalesce(ts - ts2, INTERVAL 1 DAY)",
]

_CASTS = [
    *(
        f"cast({c} as {t})"
        for c in ("i8", "i32", "i64", "d9", "d18", "b")
        for t in (
            "tinyint",
            "smallint",
            "int",
            "bigint",
            "double",
            "boolean",
            "string",
            "decimal(5, 1)",
            "decimal(20, 3)",
        )
    ),
    *(
        f"cast({c} as {t})"
        for c in ("f64", "f32")
        for t in ("tinyint", "smallint", "int", "bigint", "boolean", "double")
    ),
    *(f"try_cast({c} as {t})" for c in ("i64", "f64", "d18", "num") for t in ("tinyint", "int", "bigint")),
    *(f"cast(num as {t})" for t in ("tinyint", "smallint", "int", "bigint", "decimal(10, 2)", "decimal(38, 3)")),
    "try_cast(num as decimal(10, 2))",
    "cast(truth as boolean)",
    "try_cast(truth as boolean)",
    "cast(day as date)",
    "cast('2020-02-29' as date)",
    "cast(dt as string)",
    "cast(ntz as string)",
    "cast(ntz as date)",
    "cast(dt as timestamp_ntz)",
    "cast(ts as double)",
    "cast(ts as bigint)",
    "cast(NULL as int)",
    "cast(s as string)",
    "i32::bigint",
    "try_cast(d18 as decimal(5, 1))",
    "cast(d38 as double)",
    "cast(d38 as string)",
    "cast(d18 as decimal(38, 20))",
]

ZONED = [
    "hour(ts)",
    "minute(ts)",
    "second(ts)",
    "year(ts)",
    "day(ts)",
    "dayofweek(ts)",
    "cast(ts as date)",
    "cast(ts as string)",
    *(
        f"date_trunc('{u}', ts)"
        for u in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    ),
    "date_trunc('DD', dt)",
    "date_trunc('hour', ntz)",
    "cast(dt as timestamp)",
    "cast(ntz as timestamp)",
    "cast(ts as timestamp_ntz)",
    "ts = ntz",
    "dt < ts",
    "ts >= '2021-03-28 02:30:00'",
    "ts >= TIMESTAMP '2021-10-31 02:30:00'",
    "ts > '2021-01-01T00:00:00+05:00'",
    "ts - ts2",
    "ts + INTERVAL 90 MINUTES",
    "trunc(ts, 'month')",
    "datediff(ts, ts2)",
    "hour(dt)",
    "unix_timestamp(ts)",
    "greatest(ts, dt)",
    "last_day(ts)",
]

_MANY = ("a", "b", "bc", "'", "ä", "", *map(str, range(LONG)))
_LISTS = [
    f"s IN ({', '.join(map(string_literal, _MANY))})",
    f"NOT s2 IN ({', '.join(map(string_literal, _MANY))}) AND n > 1",
    f"n IN ({', '.join(map(str, range(-1, LONG)))})",
    # As filters with long answers are written; no other text is taken in process.
    f"array_contains(split({string_literal(MARK.join(_MANY))}, '{MARK}'), s)",
    f"array_contains(split({string_literal(MARK.join(_MANY))}, '{MARK}'), CAST(n AS STRING))",
]

EXPRESSIONS = list(
    dict.fromkeys(
        [
            *_arithmetic(),
            *_comparisons(),
            *_LOGIC,
            *_NUMBER_FUNCTIONS,
            *_TEXT_FUNCTIONS,
            *_TIME_FUNCTIONS,
            *_CASTS,
            *ZONED,
            *_LISTS,
        ]
    )
)

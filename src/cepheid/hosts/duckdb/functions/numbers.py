"""Functions of numbers."""

from __future__ import annotations

from cepheid.hosts.duckdb.functions.function import Function, same

_ULPS = "Within 2 units in the last place of Spark's."
_NAN = "CAST('NaN' AS DOUBLE)"
_ZERO = "CAST(0 AS DOUBLE)"


def _inexact(names: str, sql: str, notes: str = "", *, takes: int = 1) -> tuple[Function, ...]:
    """A function of DOUBLE that Java and C round differently in the last digit."""
    notes = f"{notes} {_ULPS}".lstrip()
    return same(names, ("DOUBLE",) * takes, "DOUBLE", sql, notes, is_exact=False)


def _positive(name: str, function: str) -> tuple[Function, ...]:
    """A logarithm."""
    return _inexact(name, f"CASE WHEN {{0}} > 0 THEN {function}({{0}}) END", "NULL for 0 and negative numbers.")


# C gives 1 for these powers, and Java NaN.
_UNDEFINED_POWER = "isnan({1}) OR (abs({0}) = 1 AND isinf({1}))"

NUMBERS: tuple[Function, ...] = (
    Function("sqrt", ("DOUBLE",), "DOUBLE", "CASE WHEN {0} < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt({0}) END"),
    *same(
        "sign signum",
        ("DOUBLE",),
        "DOUBLE",
        "CASE WHEN {0} < 0 THEN CAST(-1 AS DOUBLE) WHEN {0} = 0 OR isnan({0}) THEN {0} "
        "WHEN {0} > 0 THEN CAST(1 AS DOUBLE) END",
    ),
    Function("rint", ("DOUBLE",), "DOUBLE", "round_even({0}, 0)", "Halves go to the even neighbour."),
    Function("isnan", ("FLOATING",), "BOOLEAN", "coalesce(isnan({0}), FALSE)", "NULL gives false."),
    *_positive("ln", "ln"),
    *_positive("log", "ln"),
    *_positive("log2", "log2"),
    *_positive("log10", "log10"),
    *_inexact(
        "log",
        "CASE WHEN least({0}, {1}) > 0 THEN ln({1}) / ln({0}) END",
        "The base comes first. NULL for 0 and negative numbers.",
        takes=2,
    ),
    *_inexact("exp", "exp({0})"),
    *_inexact(
        "power pow",
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {_UNDEFINED_POWER} THEN {_NAN} ELSE pow({{0}}, {{1}}) END",
        takes=2,
    ),
    *_inexact("cbrt", "cbrt({0})"),
    *_inexact("sin", "sin({0})"),
    *_inexact("cos", "cos({0})"),
    *_inexact("tan", "tan({0})"),
    *_inexact("asin", f"CASE WHEN abs({{0}}) > 1 THEN {_NAN} ELSE asin({{0}}) END"),
    *_inexact("acos", f"CASE WHEN abs({{0}}) > 1 THEN {_NAN} ELSE acos({{0}}) END"),
    *_inexact("atan", "atan({0})"),
    # Spark adds 0.0, so that -0.0 is 0.0.
    *_inexact("atan2", f"atan2({{0}} + {_ZERO}, {{1}} + {_ZERO})", takes=2),
    *_inexact("sinh", "sinh({0})"),
    *_inexact("cosh", "cosh({0})"),
    *_inexact("tanh", "tanh({0})"),
    Function("degrees", ("DOUBLE",), "DOUBLE", "{0} * CAST('57.29577951308232' AS DOUBLE)"),
    Function("radians", ("DOUBLE",), "DOUBLE", "{0} * CAST('0.017453292519943295' AS DOUBLE)"),
    Function("pi", (), "DOUBLE", "CAST('3.141592653589793' AS DOUBLE)"),
    Function("e", (), "DOUBLE", "CAST('2.718281828459045' AS DOUBLE)"),
    Function(
        "factorial",
        ("INT",),
        "BIGINT",
        "CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END",
        "NULL for numbers outside 0 to 20.",
    ),
    Function("bin", ("BIGINT",), "STRING", "bin({0})"),
    Function("hex", ("BIGINT",), "STRING", "hex({0})"),
    *same("char chr", ("BIGINT",), "STRING", "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} % 256 AS INTEGER)) END"),
)

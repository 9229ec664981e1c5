"""Functions that a condition or measure cannot use, and the reason for each."""

from __future__ import annotations

DISTINCT = "count distinct"
"""The function `count(DISTINCT …)`; nobody can write this name."""
_VARIANCES = {"variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop", "std"}
_OF_MEASURES = {"max_by", "min_by", "array_agg", "collect_list"}
PATTERN_FUNCTIONS = frozenset(
    {"first", "last", "count", DISTINCT, "sum", "avg", "min", "max", *_VARIANCES, *_OF_MEASURES}
)
"""The functions over the events that a stage has so far. Every other function is scalar."""

_GENERATORS = """explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple
    variant_explode variant_explode_outer collations sql_keywords"""
_NON_DETERMINISTIC = """rand random randn randstr uniform uuid shuffle now current_timestamp current_date curdate
    current_time localtimestamp unix_timestamp_now current_user session_user user current_catalog
    current_database current_schema current_timezone monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length version reflect java_method
    try_reflect"""
_AGGREGATES = """any_value any some every bool_and bool_or approx_count_distinct approx_percentile
    bit_and bit_or bit_xor collect_set corr count_if count_min_sketch covar_pop
    covar_samp first_value grouping grouping_id histogram_numeric kurtosis last_value listagg
    string_agg mean median mode percentile percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy skewness sum_distinct try_avg try_sum"""
_WINDOW = "row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value window session_window window_time"

NO_PARENTHESES = frozenset(
    {"current_timestamp", "current_date", "current_time", "localtimestamp", "current_user", "session_user", "user"}
)
"""Refused functions that may be written without parentheses; a column of that name takes precedence."""

_REASONS = {
    **dict.fromkeys(_GENERATORS.split(), "makes rows; a condition is one value per event"),
    **dict.fromkeys(
        _NON_DETERMINISTIC.split(),
        "does not depend on the events alone, so the same events could give different matches",
    ),
    **dict.fromkeys(
        _AGGREGATES.split(),
        "is an aggregate; over a stage's events use first, last, count, sum, avg, min, max, stddev or variance",
    ),
    **dict.fromkeys(_WINDOW.split(), "is a window function; refer to earlier events by their stage"),
}


def why_refused(function: str, arguments: int) -> str | None:
    """Why the function is refused, phrased to follow its name; None if it is not refused."""
    if function == "unix_timestamp" and arguments == 0:
        return _REASONS["now"]
    return _REASONS.get(function)

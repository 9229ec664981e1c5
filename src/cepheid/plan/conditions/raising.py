"""Which expressions can fail on an event (ANSI mode), and so must be computed only if their guard is true."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from cepheid.lang.expression import Call, Expression, Literal
from cepheid.plan.conditions.constant_texts.values import value_of_text
from cepheid.plan.conditions.result_types import ARITHMETIC, COMPARISONS, beside_text, texts_read
from cepheid.plan.conditions.types import as_decimal, is_decimal, is_float, is_integer, is_string
from cepheid.plan.conditions.value_casts import groups_of_one_type

_TOTAL_FUNCTIONS = """
    and or not is_null is_not_null between in like ilike like_any like_all rlike case case_of coalesce nvl nvl2
    ifnull nullif if least greatest concat concat_ws positive & | ^ ~ field lambda try_cast try_add try_subtract
    try_multiply try_divide try_mod try_element_at try_to_timestamp try_to_number upper ucase lower lcase length len
    char_length character_length octet_length trim ltrim rtrim trim_from btrim substring substr substring_from left
    right reverse startswith endswith contains instr locate position position_from replace translate lpad rpad
    initcap split_part regexp_replace regexp_like regexp_count isnull isnotnull get_json_object size cardinality
    array_contains split array map struct named_struct md5 sha1 sha2 crc32 hash xxhash64 soundex levenshtein ascii
    exists forall filter transform
"""
_TOTAL_OF_VALUES = """
    year month day dayofmonth dayofweek weekday dayofyear quarter hour minute second weekofyear extract date_trunc trunc
    last_day date_format datediff isnan nanvl sqrt exp ln log log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh
    cbrt power pow degrees radians sign signum
"""
_TOTAL = frozenset(_TOTAL_FUNCTIONS.split())
"""Functions that give a value or NULL for all operands, so that they never fail. A function that is missing here is
only computed more carefully.
"""
_TOTAL_WITHOUT_TEXTS = frozenset(_TOTAL_OF_VALUES.split())
"""Functions of numbers and times. They never fail, but the cast of a text that they are applied to may."""


def call_can_raise(call: Call, types: Sequence[pa.DataType], result: pa.DataType) -> bool:
    """Whether the operator or function itself can fail, apart from its operands."""
    name = call.function
    if name in ARITHMETIC and _may_fail_on_texts(call.args, types):
        return True
    read = texts_read(name, types)
    if not all(_is_read(call.args[place], type_) for place, type_ in read.items()):
        return True
    if name in ("+", "-", "*", "negate", "abs"):
        return _can_overflow(result)
    if name in ("/", "div", "%"):
        divisor = call.args[1]
        nonzero = isinstance(divisor, Literal) and bool(divisor.value) and not isinstance(divisor.value, str)
        return not nonzero or name == "div" or _can_overflow(result)
    if name == "cast":
        return not (_is_safe_cast(types[0], result) or _is_read(call.args[0], result))
    if groups := [*groups_of_one_type(name, len(types))]:
        return any(_may_fail_on_texts([call.args[i] for i in group], [types[i] for i in group]) for group in groups)
    if name in _TOTAL_WITHOUT_TEXTS:
        pairs = zip(call.args, types, strict=True)
        return any(is_string(type_) and not isinstance(arg, Literal) for arg, type_ in pairs)
    return name not in _TOTAL | COMPARISONS


def _may_fail_on_texts(args: Sequence[Expression], types: Sequence[pa.DataType]) -> bool:
    """Whether a text is among them that may not be a value of the other types: Spark casts it to them."""
    texts = [arg for arg, type_ in zip(args, types, strict=True) if is_string(type_)]
    others = [type_ for type_ in types if not (is_string(type_) or pa.types.is_null(type_))]
    return any(not _is_read(text, beside_text(type_)) for type_ in others for text in texts)


def _is_read(text: Expression, type_: pa.DataType | None) -> bool:
    """Whether it is a constant text that every host reads as a value of the type, times only without a zone."""
    if type_ is None or not (isinstance(text, Literal) and isinstance(text.value, str)):
        return False
    try:
        value = value_of_text(text.value, type_)
    except ValueError:
        return False
    return not isinstance(value, datetime) or value.tzinfo is None


def _can_overflow(type_: pa.DataType) -> bool:
    if is_decimal(type_):
        return bool(type_.precision == 38)
    return not is_float(type_)


def _is_safe_cast(source: pa.DataType, target: pa.DataType) -> bool:
    if source == target or is_string(target) or pa.types.is_null(source):
        return True
    if pa.types.is_timestamp(target):
        return bool(source == pa.date32() or pa.types.is_timestamp(source))
    if is_float(target):
        return bool(is_integer(source) or is_decimal(source) or is_float(source) or pa.types.is_boolean(source))
    if is_integer(target):
        return bool(pa.types.is_boolean(source) or (is_integer(source) and source.bit_width <= target.bit_width))
    if is_decimal(target) and (is_integer(source) or is_decimal(source)):
        exact = as_decimal(source)
        return bool(exact.scale <= target.scale and exact.precision - exact.scale <= target.precision - target.scale)
    return bool(target == pa.date32() and pa.types.is_timestamp(source))

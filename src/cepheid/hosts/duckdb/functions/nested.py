"""Arrays, maps and fields of structs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.fragment import Fragment, bound, duckdb_type, fail, widened
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, WrongArguments, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.result_types import common_type
from cepheid.plan.conditions.types import is_float, is_integer, is_list, is_orderable, is_string, sql_name

_OUTSIDE = "the index is outside the array"


def _index(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`array[i]` counts from 0, and fails outside the array; `map[key]` is NULL without the key."""
    container, place = args
    if arrow.is_map(container.type):
        return _value_of_key(container, place, zone)
    index = _place("[ ]", args)
    type_ = container.type.value_type
    outside = f"{index} < 0 OR {index} >= len(v)"
    whens = f"WHEN v IS NULL THEN NULL WHEN {outside} THEN {fail(_OUTSIDE, type_)}"
    body = f"CASE {whens} ELSE list_extract(v, {index} + 1) END"
    return guarded(args, bound(container.text, body), type_, fails=True)


def _element_at(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """Counts from 1, and from the end if the number is negative. Outside the array it fails, or is NULL for `try_`."""
    container, place = args
    if arrow.is_map(container.type):
        return _value_of_key(container, place, zone)
    index = _place(call.function, args)
    type_ = container.type.value_type
    zero = f"WHEN {index} = 0 THEN {fail('the index 0; elements count from 1', type_)}"
    outside = f"WHEN abs({index}) > len(v) THEN {fail(_OUTSIDE, type_)}" if call.function == "element_at" else ""
    body = f"CASE WHEN v IS NULL THEN NULL {zero} {outside} ELSE list_extract(v, {index}) END"
    return guarded(args, bound(container.text, body), type_, fails=True)


def _place(function: str, args: Sequence[Fragment]) -> str:
    """The index as a BIGINT."""
    container, place = args
    if is_list(container.type) and place.type == pa.int64():
        raise NotInProcess(f"{function} with an index of type BIGINT")
    if not is_list(container.type) or not is_integer(place.type):
        raise WrongArguments(f"{function} takes an ARRAY and an INT, or a MAP and a key, got {_given(args)}")
    return f"CAST({place.text} AS BIGINT)"


def _get(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """Counts from 0; NULL outside the array."""
    index = _place(call.function, args)
    array = args[0].text
    text = f"CASE WHEN {array} IS NULL THEN NULL WHEN {index} >= 0 THEN list_extract({array}, {index} + 1) END"
    return guarded(args, text, args[0].type.value_type)


def _value_of_key(map_: Fragment, key: Fragment, zone: str) -> Fragment:
    wanted = _key(map_, key, zone)
    return guarded((map_, wanted), f"map_extract_value({map_.text}, {wanted.text})", map_.type.item_type)


def _key(map_: Fragment, key: Fragment, zone: str) -> Fragment:
    type_ = map_.type.key_type
    if arrow.is_null(key.type) or is_float(type_) or not (is_integer(type_) or is_string(type_) or type_ == key.type):
        raise NotInProcess(f"a key of type {sql_name(key.type)} in {sql_name(map_.type)}")
    if is_string(type_) != is_string(key.type) or (wanted := widened(key, type_, zone)) is None:
        raise WrongArguments(f"the keys are {sql_name(type_)}, this is {sql_name(key.type)}. Cast it")
    return wanted


def _contains_key(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    map_, key = _map(call, args), args[1]
    wanted = _key(map_, key, zone)
    return guarded((map_, wanted), f"list_contains(map_keys({map_.text}), {wanted.text})", pa.bool_())


def _map(call: Call, args: Sequence[Fragment]) -> Fragment:
    if not arrow.is_map(args[0].type):
        raise WrongArguments(f"{call.function} takes a MAP, got {_given(args)}")
    return args[0]


def _keys(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """The keys, or the values, as an array."""
    (map_,) = (_map(call, args),)
    type_ = map_.type.key_type if call.function == "map_keys" else map_.type.item_type
    return guarded(args[:1], f"{call.function}({map_.text})", pa.list_(type_))


def _size(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """The number of elements or keys; NULL for NULL."""
    (value,) = args
    if is_list(value.type):
        return guarded(args, f"CAST(len({value.text}) AS INTEGER)", pa.int32())
    if arrow.is_map(value.type) and call.function != "array_size":
        return guarded(args, f"CAST(cardinality({value.text}) AS INTEGER)", pa.int32())
    raise WrongArguments(
        f"{call.function} takes an ARRAY{'' if call.function == 'array_size' else ' or MAP'}, got {_given(args)}"
    )


def _array(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    type_ = common_type([arg.type for arg in args]) if args else pa.null()
    if type_ is None or arrow.is_null(type_):
        raise NotInProcess(f"an array of {_given(args) or 'nothing'}")
    elements = [widened(arg, type_, zone) for arg in args]
    known = [element for element in elements if element is not None]
    if len(known) < len(args):
        raise NotInProcess(f"an array of {_given(args)}")
    listed = ", ".join(element.text for element in known)
    return Fragment(f"[{listed}]", pa.list_(type_), raises=any(arg.raises for arg in args))


def _with_value(call: Call, args: Sequence[Fragment], zone: str) -> tuple[Fragment, Fragment]:
    """An array and a value, both of the type that can hold both."""
    array, value = args
    if not is_list(array.type) or arrow.is_null(value.type):
        raise WrongArguments(f"{call.function} takes an ARRAY and a value, got {_given(args)}")
    element = array.type.value_type
    type_ = common_type([element, value.type])
    wanted = None if type_ is None else widened(value, type_, zone)
    if type_ is None or wanted is None or (is_float(type_) and not (is_float(element) and is_float(value.type))):
        raise WrongArguments(f"{call.function} takes an ARRAY and a value of its elements' type, got {_given(args)}")
    if not is_orderable(type_) or not (type_ == element or is_integer(type_)):
        raise NotInProcess(f"{call.function} of {_given(args)}")
    text = array.text if type_ == element else f"CAST({array.text} AS {duckdb_type(type_)}[])"
    return Fragment(text, pa.list_(type_), raises=array.raises), wanted


def _contains(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """NULL if the value is not found and the array has a NULL."""
    array, value = _with_value(call, args, zone)
    unknown = f"WHEN {value.text} IS NULL THEN NULL"
    body = f"CASE {unknown} WHEN list_contains(v, {value.text}) THEN TRUE WHEN list_count(v) = len(v) THEN FALSE END"
    return guarded((array, value), bound(array.text, body), pa.bool_())


def _position(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    array, value = _with_value(call, args, zone)
    found = f"CAST(coalesce(list_position({array.text}, {value.text}), 0) AS BIGINT)"
    text = f"CASE WHEN {array.text} IS NOT NULL AND {value.text} IS NOT NULL THEN {found} END"
    return guarded((array, value), text, pa.int64())


def _of_elements(call: Call, args: Sequence[Fragment], _: str) -> Fragment:
    """`array_min`, `array_max` and `sort_array`."""
    (array,) = args
    if not is_list(array.type) or not is_orderable(array.type.value_type):
        raise NotInProcess(f"{call.function} of {_given(args)}")
    inexact = is_float(array.type.value_type)
    if call.function == "sort_array":
        if inexact:
            raise NotInProcess("sort_array of FLOAT and DOUBLE")
        return guarded(args, f"list_sort({array.text}, 'ASC', 'NULLS FIRST')", array.type)
    text = f"list_{call.function[-3:]}({array.text})"
    if inexact:  # Spark gives the first of equal values, -0.0 or 0.0
        text = bound(
            text, f"CASE WHEN v = 0 THEN list_extract({array.text}, list_position({array.text}, 0)) ELSE v END"
        )
    return guarded(args, text, array.type.value_type)


def _joined(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The texts of the array with the separator between them, without NULLs."""
    array, separator = args
    text = widened(separator, pa.string(), zone)
    if not is_list(array.type) or not is_string(array.type.value_type) or text is None:
        raise WrongArguments(f"{call.function} takes an ARRAY<STRING> and a STRING, got {_given(args)}")
    if text.literal is None or not isinstance(text.literal.value, str):
        raise NotInProcess(f"{call.function} with a separator that is not a constant")
    joined = f"coalesce(array_to_string({array.text}, {text.text}), '')"
    return guarded([array], f"CASE WHEN {array.text} IS NOT NULL THEN {joined} END", pa.string())


def _field(_: Call, args: Sequence[Fragment], __: str) -> Fragment:
    """A field of a struct."""
    struct, name = args
    assert name.literal is not None
    wanted = str(name.literal.value)
    if not arrow.is_struct(struct.type):
        if is_list(struct.type) and arrow.is_struct(struct.type.value_type):
            raise NotInProcess("the field of all structs of an array")
        raise WrongArguments(f"{sql_name(struct.type)} has no field {wanted!r}")
    found = [field for field in struct.type if field.name.lower() == wanted.lower()]
    if len(found) != 1:
        raise WrongArguments(f"{sql_name(struct.type)} has {'several fields' if found else 'no field'} {wanted!r}")
    text = f"struct_extract({struct.text}, '{found[0].name.replace(chr(39), chr(39) * 2)}')"
    return guarded([struct], text, found[0].type)


def _given(args: Sequence[Fragment]) -> str:
    return ", ".join(sql_name(arg.type) for arg in args)


NESTED: dict[str, Rule] = {
    "index": _index,
    **dict.fromkeys(("element_at", "try_element_at"), _element_at),
    "get": _get,
    **dict.fromkeys(("size", "cardinality", "array_size"), _size),
    "array": _array,
    "array_contains": _contains,
    "array_position": _position,
    **dict.fromkeys(("array_min", "array_max", "sort_array"), _of_elements),
    "array_join": _joined,
    **dict.fromkeys(("map_keys", "map_values"), _keys),
    "map_contains_key": _contains_key,
    "field": _field,
}

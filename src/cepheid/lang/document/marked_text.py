"""YAML and JSON text → plain values, and the place of each value in the text.

Loading is safe by construction: only mappings, lists, text, numbers, booleans and null are read, as YAML 1.2 and JSON
define them (`on`, `no`, `12:30` and `2024-01-01` are text; YAML 1.1 reads them as booleans, numbers and dates).
Duplicate keys, tags, anchors and aliases are problems. JSON is read by the json module, because a YAML parser would
fold line separators and split surrogate pairs. The places in JSON still come from the YAML parser.
"""

from __future__ import annotations

import json
import pathlib
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import yaml

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Span

Value: TypeAlias = "dict[str, Value] | list[Value] | str | int | float | bool | None"
Path: TypeAlias = tuple[str | int, ...]

_DEEPEST = 20
"""The most levels of nesting, which bounds the recursion. A pattern has six levels, and two more for each nested group.
"""
_LONGEST_NUMBER = 400
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_TAG = "tag:yaml.org,2002:"


@dataclass
class MarkedText:
    """The value of a text, and the span of each part by its path: keys and list indices from the root."""

    text: str
    source: str
    folder: pathlib.Path | None = None
    """Where the files are that the text names; None: it must not name files, as it is not read from one."""
    is_json: bool = False
    value: Value = None
    spans: dict[Path, Span] = field(default_factory=dict)
    key_spans: dict[Path, Span] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, message: str, span: Span, hint: str | None = None) -> Problem:
        """A problem of this text at `span`."""
        return Problem(message, where=self.source, text=self.text, span=span, hint=hint)


class _Loader(yaml.SafeLoader):
    """Composes nodes with the scalars of YAML 1.2; refuses aliases and too deep nesting."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc] # the stub has it per instance
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            message = "anchors and aliases are not supported: write the value out"
            raise yaml.MarkedYAMLError(None, None, message, event.start_mark)
        if self.depth == _DEEPEST:
            raise yaml.MarkedYAMLError(None, None, f"nested deeper than {_DEEPEST} levels", event.start_mark)
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """Writes text so that both YAML 1.1 and 1.2 readers read it as text, and pairs of numbers on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().increase_indent(flow, indentless=False)


def _represent_list(dumper: _Dumper, values: list[Value]) -> yaml.Node:
    numbers = all(isinstance(value, int) for value in values)
    return dumper.represent_sequence(_TAG + "seq", values, flow_style=numbers)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    # Without quotes PyYAML writes these line separators as they are, and every YAML reader folds them to a space.
    style = '"' if re.search("[\x85\u2028\u2029\ufeff]", text) else None
    return dumper.represent_scalar(_TAG + "str", text, style=style)


_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(str, _represent_text)
for _tag, _form, _first in (
    ("bool", re.compile(f"({'|'.join(_BOOLEANS)})$"), list("tTfF")),
    ("null", re.compile(r"(~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("int", re.compile(r"[-+]?[0-9]+$"), list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789.")),
):
    _Loader.add_implicit_resolver(_TAG + _tag, _form, _first)
    _Dumper.add_implicit_resolver(_TAG + _tag, _form, _first)


def dump_yaml(value: Value) -> str:
    """`value` as YAML that `load_marked` reads as the same value."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def load_marked(text: str, *, source: str, folder: pathlib.Path | None = None) -> MarkedText:
    """The value of YAML or JSON `text` and its places; `problems` lists what is wrong with single parts of it. `folder`
    is where the files are that the text names; None: it must not name files.

    Raises:
        PatternError: `text` is neither YAML nor JSON.
    """
    marked = MarkedText(text, source, folder)
    as_json, marked.is_json = _read_json(marked)
    node = _compose(marked, _blank_separators(text) if marked.is_json else text)
    if node is None:
        raise PatternError(marked.problem("there is no pattern here: the text is empty", (0, 0)))
    value = _construct(node, (), marked)
    marked.value = as_json if marked.is_json else value
    return marked


def _read_json(marked: MarkedText) -> tuple[Value, bool]:
    if not marked.text.lstrip().startswith("{"):
        return None, False
    try:
        return json.loads(marked.text), True
    except json.JSONDecodeError as error:
        if marked.source.lower().endswith(".json"):
            problem = marked.problem(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}", (error.pos, error.pos + 1))
            raise PatternError(problem) from None
    except (RecursionError, ValueError):
        pass  # too deep, or a number with thousands of digits: reading it as YAML gives the place
    return None, False


def _blank_separators(text: str) -> str:
    """JSON `text` with spaces in place of characters that JSON allows and YAML does not; places do not change."""
    return re.sub("[\t\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]", " ", text)


def _compose(marked: MarkedText, text: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or yaml.Mark("", 0, 0, 0, None, 0)
        message = ", ".join(part for part in (error.context, error.problem) if part)
        hint = "YAML indents with spaces, not tabs." if "'\\t'" in message else _quoting_hint(message)
        raise PatternError(marked.problem(f"not YAML: {message}", (mark.index, mark.index + 1), hint)) from None
    except yaml.reader.ReaderError as error:
        message = f"not YAML: the character #x{error.character:04x} is not allowed"
        raise PatternError(marked.problem(message, (error.position, error.position + 1))) from None
    return node


def _quoting_hint(message: str) -> str | None:
    if "mapping values are not allowed" in message or "while scanning a simple key" in message:
        return "Text with ': ' or ' #' in it must be in quotes."
    if "found character '" in message:  # a back-quote, @ or %
        return "Text that begins with this character must be in quotes."
    return None


def _construct(node: yaml.Node, path: Path, marked: MarkedText) -> Value:
    marked.spans[path] = _span(node)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, marked)
    if node.tag not in (_TAG + "map", _TAG + "seq"):
        marked.problems.append(marked.problem(f"the tag {node.tag!r} is not read: leave it out", _span(node)))
    if isinstance(node, yaml.SequenceNode):
        return [_construct(item, (*path, index), marked) for index, item in enumerate(node.value)]
    return _mapping(node, path, marked)


def _mapping(node: yaml.Node, path: Path, marked: MarkedText) -> Value:
    mapping: dict[str, Value] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            marked.problems.append(marked.problem("a key must be text", _span(key_node)))
            continue
        key = _key(key_node, marked)
        if key in mapping:
            line = marked.text.count("\n", 0, marked.key_spans[(*path, key)][0]) + 1
            message = f"the key {key!r} is here twice, first on line {line}"
            marked.problems.append(marked.problem(message, _span(key_node)))
            continue
        marked.key_spans[(*path, key)] = _span(key_node)
        mapping[key] = _construct(value_node, (*path, key), marked)
    return mapping


def _key(node: yaml.ScalarNode, marked: MarkedText) -> str:
    if marked.is_json:  # from the original text: the YAML parser was given blanks in place of some characters
        key: str = json.loads(marked.text[slice(*_span(node))])
        return key
    return _joined_surrogates(node, marked)


def _scalar(node: yaml.ScalarNode, marked: MarkedText) -> Value:
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "str":
            return _joined_surrogates(node, marked)
        case "null":
            return None
        case "bool" if text in _BOOLEANS:
            return _BOOLEANS[text]
        case "int" | "float" if len(text) > _LONGEST_NUMBER:
            marked.problems.append(marked.problem(f"a number of {len(text)} digits is not read", _span(node)))
            return None
        case "int" if re.fullmatch(r"[-+]?[0-9]+", text):
            return int(text)
        case "float" if _FLOAT.match(text):
            return float(text)
    marked.problems.append(marked.problem(f"the tag {node.tag!r} is not read: leave it out", _span(node)))
    return text


def _joined_surrogates(node: yaml.ScalarNode, marked: MarkedText) -> str:
    """The node's text, with surrogate pairs joined: JSON writes a character beyond 16 bits as two escapes, and the YAML
    parser leaves them apart.
    """
    text: str = node.value
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        marked.problems.append(marked.problem("half of a surrogate pair is not text", _span(node)))
        return ""


def _span(node: yaml.Node) -> Span:
    """The node's span: all characters of a scalar, the first character of a mapping or list."""
    start, end = node.start_mark.index, node.end_mark.index
    return (start, end) if isinstance(node, yaml.ScalarNode) else (start, start + 1)

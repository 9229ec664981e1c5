"""Imports go one way: a module imports only from layers before its own, and heavy packages only where they belong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import cepheid

SOURCE = Path(cepheid.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

LAYERS = (
    "errors",
    "events",
    "lang",
    "plan",
    "compile",
    "kernel",
    "output",
    "matchers",
    "requests",
    "hosts",
    "detect",
    "split",
    "matcher",
    "intervals",
    "streams",
    "testing",
    "demo",
    "cli",
    "__main__",
)
"""In the order of the flow. Modules of one layer may import each other; the package's `__init__` may import all."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "numba": ("kernel",),
    "pyspark": (
        "hosts",
        "detect",
        "streams",
        "split",
        "demo",
        "cli",
    ),  # types only, but in hosts, and to read files
    "duckdb": ("hosts",),
    "sqlglot": ("lang",),
    "typer": ("cli",),
    "rich": ("cli",),
}
"""Packages from outside, and the layers that may import them."""


def layer_of(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(module: Path) -> Iterator[tuple[str, str | None]]:
    """Each (module, name) that the file imports, also in functions and for types only."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, None) for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                assert level == 0, f"{module}:{node.lineno}: imports are absolute"
                yield from ((str(source), alias.name) for alias in names)


def layer_imported(source: str, name: str | None) -> str | None:
    """The layer that an import of ours reaches, None for what is not ours; `from cepheid import x` reaches x's."""
    package, *rest = source.split(".")
    if package != "cepheid":
        return None
    return rest[0] if rest else name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_a_module_imports_only_from_layers_before_it(module: Path) -> None:
    """A module imports from its own layer and from earlier ones."""
    layer = layer_of(module)
    if layer == "__init__":
        return
    assert layer in LAYERS, f"{layer} is not in the list of layers: add it where the flow reaches it"
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    reached = {layer_imported(source, name) for source, name in imports_of(module)} - {None}
    assert reached <= set(allowed), f"{layer} comes before {', '.join(sorted(map(str, reached - set(allowed))))}"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_heavy_packages_are_imported_only_in_their_layer(module: Path) -> None:
    """The compiler stays in the kernel, Spark and DuckDB in the hosts, the SQL parser in the language, and so on."""
    layer = layer_of(module)
    for source, _ in imports_of(module):
        package = source.split(".")[0]
        assert layer in ONLY_IN.get(package, (layer,)), f"{package} belongs in {', '.join(ONLY_IN[package])}"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_private_names_stay_in_their_module(module: Path) -> None:
    """No module imports a name with a leading underscore from another of ours."""
    private = [
        f"{source}.{name}" if name else source
        for source, name in imports_of(module)
        if source.split(".")[0] == "cepheid"
        and any(part.startswith("_") and part != "__future__" for part in [*source.split("."), name or ""])
    ]
    assert not private


def test_imports_inside_functions_are_read(tmp_path: Path) -> None:
    """The reader sees imports in functions and under TYPE_CHECKING, so neither hides one."""
    file = tmp_path / "module.py"
    file.write_text("if TYPE_CHECKING:\n    import numba\ndef f():\n    from cepheid.cli import app\n")
    assert set(imports_of(file)) == {("numba", None), ("cepheid.cli", "app")}

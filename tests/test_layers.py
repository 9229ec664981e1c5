"""The layout of the code: imports go one way without cycles, and heavy packages and kinds of pattern stay in their
folders.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import cepheid
from cepheid.families import FAMILIES

SOURCE = Path(cepheid.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

LAYERS = (
    "errors",
    "allocation",
    "knowledge",
    "events",
    "lang",
    "plan",
    "compile",
    "kernel",
    "output",
    "matchers",
    "families",
    "requests",
    "hosts",
    "detect",
    "streams",
    "matcher",
    "host",
    "intervals",
    "testing",
    "plotting",
    "distribution",
    "demo",
    "cli",
)
"""In the order of the data flow. Modules of one layer may import each other. The package's `__init__` and `__main__`
may import all.
"""

ONLY_BELOW: dict[str, tuple[str, ...]] = {
    "numba": ("kernel",),
    "llvmlite": ("kernel",),
    "pyspark": ("hosts/spark",),
    "duckdb": ("hosts/duckdb", "hosts/in_process", "hosts/durable/stores"),
    "psycopg": ("hosts/durable/stores",),
    "confluent_kafka": ("hosts/sources", "hosts/durable/routing"),
    "sqlglot": ("lang",),
    "pyoxigraph": ("knowledge",),
    "altair": ("plotting",),
    "vl_convert": ("plotting",),
    "typer": ("cli",),
    "rich": ("cli",),
}
"""External packages, and the folders that may import them at run time. Type checking may import them anywhere."""

USES_SPARK = ("cli", "demo")
"""These folders use Spark as its users do: they read files and streams and show the results."""

NAME_KINDS = {
    "__init__.py",
    "detect.py",
    "matcher.py",
    "intervals.py",
    "streams.py",
    "testing.py",
    "demo/pattern.py",
    "families/__init__.py",
    "lang/documents.py",
}
"""The modules that may name kinds of pattern: the public names, FAMILIES, and the table of pattern documents."""

MOST_FILES = 20
"""The most files in one folder."""
MOST_MODULES = 10
"""The most modules next to the layers."""


def layer_of(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imports_of(module: Path, *, types: bool = True) -> list[tuple[str, str | None]]:
    """Each (module, name) that the file imports, also in functions and, with `types`, for type checkers only."""
    return [*_imports_of(module, types=types)]


def _imports_of(module: Path, *, types: bool) -> Iterator[tuple[str, str | None]]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types and not types:
            continue
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, None) for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                assert level == 0, f"{module}:{node.lineno}: imports are absolute"
                yield from ((str(source), alias.name) for alias in names)


def layer_imported(source: str, name: str | None) -> str | None:
    """The layer of an imported module, or None if it is not in the package; for `from cepheid import x`, the layer of
    x.
    """
    package, *rest = source.split(".")
    if package != "cepheid":
        return None
    return rest[0] if rest else name


def test_modules_import_only_from_layers_before_them() -> None:
    """A module imports from its own layer and from earlier ones."""
    for module in MODULES:
        layer = layer_of(module)
        if layer in ("__init__", "__main__"):
            continue
        assert layer in LAYERS, f"{layer} is not in the list of layers: add it where the flow reaches it"
        reached = {layer_imported(source, name) for source, name in imports_of(module)} - {None}
        later = reached - set(LAYERS[: LAYERS.index(layer) + 1])
        assert not later, f"{module}: {layer} comes before {', '.join(sorted(map(str, later)))}"


def test_heavy_packages_are_imported_only_in_their_folder() -> None:
    """Heavy packages are imported only in their folders: the compiler in the kernel, Spark and DuckDB in their hosts,
    and so on.
    """
    for module in MODULES:
        place = module.relative_to(SOURCE).as_posix()
        for source, _ in imports_of(module, types=False):
            package = source.split(".")[0]
            folders = ONLY_BELOW.get(package, ("",)) + (USES_SPARK if package == "pyspark" else ())
            below = tuple(f"{folder}/" if folder else "" for folder in folders)
            assert place.startswith(below), f"{module}: {package} belongs below {', '.join(folders)}"


def test_no_import_leads_back() -> None:
    """No module imports itself through other modules, not even inside functions."""
    known = {module_name(module): module for module in MODULES}
    imported = {
        name: {
            found
            for source, attribute in imports_of(module, types=False)
            if (found := f"{source}.{attribute}" if f"{source}.{attribute}" in known else source) in known
        }
        for name, module in known.items()
    }
    order: list[str] = []
    while len(order) < len(known):
        free = [name for name in known if name not in order and imported[name] <= {*order, name}]
        assert free, f"in a circle: {sorted(set(known) - set(order))}"
        order += free


def module_name(module: Path) -> str:
    parts = module.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Kinds of pattern


KINDS = [family.kind for family in FAMILIES]


def kind_of(parts: tuple[str, ...]) -> str | None:
    """The kind of pattern that a folder or file within a layer belongs to; sets belong to stages."""
    inner = [part.removesuffix(".py") for part in parts[1:]]
    return "stages" if "sets" in inner else next((kind for kind in KINDS if kind in inner), None)


def test_a_kind_of_pattern_is_named_only_in_its_folders() -> None:
    """Modules shared by all kinds, hosts, requests and the command line import no module of a single kind."""
    for module in MODULES:
        place = module.relative_to(SOURCE)
        for source, name in imports_of(module) if place.as_posix() not in NAME_KINDS else ():
            package, *rest = [*source.split("."), name or ""]
            kind = kind_of(tuple(rest)) if package == "cepheid" else None
            assert kind in (None, kind_of(place.parts)), f"{place} imports {source}.{name}, of {kind}"


@pytest.mark.parametrize("layer", ["lang", "plan", "compile", "kernel", "output", "matchers", "families"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_layer_has_a_place_for_each_kind(layer: str, kind: str) -> None:
    """A new kind of pattern has a folder or file of its name in each of these layers."""
    assert (SOURCE / layer / kind).is_dir() or (SOURCE / layer / f"{kind}.py").is_file()


# Sizes


def test_folders_are_small() -> None:
    """Folders stay small enough to look through."""
    for folder in {module.parent for module in MODULES}:
        files = [module for module in MODULES if module.parent == folder and module.name != "__init__.py"]
        assert len(files) <= (MOST_FILES if folder != SOURCE else MOST_MODULES), folder
    assert len(LAYERS) <= 23


def test_the_layers_are_described() -> None:
    """CONTRIBUTING and how_it_works list the layers in their order."""
    listed = ", ".join(f"`{layer}`" for layer in LAYERS)
    for page in ("CONTRIBUTING.md", "docs/how_it_works.md"):
        assert listed in " ".join((SOURCE.parents[1] / page).read_text("utf-8").split()), f"{page}: {listed}"


def test_private_names_stay_in_their_module() -> None:
    """No module imports a name with a leading underscore from another module of the package."""
    private = [
        f"{module}: {source}.{name}" if name else f"{module}: {source}"
        for module in MODULES
        for source, name in imports_of(module)
        if source.split(".")[0] == "cepheid"
        and any(part.startswith("_") and part != "__future__" for part in [*source.split("."), name or ""])
    ]
    assert not private


def test_imports_inside_functions_are_read(tmp_path: Path) -> None:
    """`imports_of` finds imports in functions and under TYPE_CHECKING, so neither can hide one."""
    file = tmp_path / "module.py"
    file.write_text("if TYPE_CHECKING:\n    import numba\ndef f():\n    from cepheid.cli import app\n")
    assert set(imports_of(file)) == {("numba", None), ("cepheid.cli", "app")}

"""The name of the folder of compiled kernels depends on everything that compiled functions contain."""

from __future__ import annotations

import ast
import dis
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest
from numba.core.dispatcher import Dispatcher

import cepheid
from cepheid import kernel
from cepheid.kernel.jit import CONSTANTS, fingerprint, fingerprinted

PACKAGE = Path(cepheid.__file__).parent
CHANGES = {
    "plan/condition_bits.py": ("MAX_CONDITIONS = WORD = 63", "MAX_CONDITIONS = WORD = 62"),
    "plan/intervals/constants.py": ("RIGHT = 2", "RIGHT = 9"),
    "plan/occurrences/constants.py": ("THEN = 3", "THEN = 9"),
    "compile/arrays.py": ("NONE = -1", "NONE = -2"),
    "kernel/arrays.py": ("NO_TIME = np.iinfo(np.int64).min", "NO_TIME = np.iinfo(np.int64).min + 1"),
    "compile/instructions.py": ("SUM = 4", "SUM = 9"),
    "compile/intervals/tables.py": ("GAP = 1", "GAP = 9"),
    "compile/knowledge/tables.py": ("PREDICATE_OBJECT = 2", "PREDICATE_OBJECT = 9"),
    "compile/occurrences/tables.py": ("NONE = -1", "NONE = -2"),
    "compile/stages/tables.py": ("STOPPED = -2", "STOPPED = -3"),
    "kernel/knowledge/layout.py": ("IN_BASE = -2", "IN_BASE = -3"),
    "kernel/occurrences/layout.py": ("BOUND = 1", "BOUND = 9"),
    "kernel/intervals/layout.py": ("RETRACTION, COMPLETION = 0, 1, -1, 2", "RETRACTION, COMPLETION = 0, -1, 1, 2"),
    "kernel/stages/layout.py": ("GROWN = -1", "GROWN = -2"),
    "kernel/stages/observed/classes/layout.py": ("NO_START = -1", "NO_START = -2"),
    "kernel/sets/layout.py": ("1 << 50", "1 << 51"),
    "kernel/jit.py": ("_nrt=False, forceinline=True", "_nrt=False"),
    "kernel/scripts/functions.py": ("2**53", "2**52"),
}


# What compiled functions contain

Name = tuple[str, str]
"""A module, and a name in it."""


def path_of(module: str) -> str:
    """The file of a module of the package, relative to the package."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(PACKAGE).as_posix()


@cache
def definitions(module: str) -> dict[str, ast.stmt]:
    """For each name that a module binds at its top level, the statement that binds it."""
    found: dict[str, ast.stmt] = {}
    for statement in ast.parse((PACKAGE / path_of(module)).read_text(encoding="utf-8")).body:
        match statement:
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                found |= {alias.asname or alias.name.split(".")[0]: statement for alias in names}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = statement
            case ast.Assign() | ast.AnnAssign():
                found |= {node.id: statement for node in ast.walk(statement) if is_stored(node)}
    return found


def is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def defined_at(module: str, name: str) -> Name | None:
    """The module and name where a name is defined, followed through all imports; None outside of the package."""
    statement = definitions(module).get(name)
    match statement:
        case None | ast.Import():
            return None
        case ast.ImportFrom(module=str(source), names=names):
            if source.split(".")[0] != "cepheid":
                return None
            (original,) = {alias.name for alias in names if (alias.asname or alias.name) == name}
            return defined_at(source, original)
    return module, name


def read_by(statement: ast.stmt) -> set[str]:
    """The names that a constant's value or a class's fields depend on."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of all functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def names_in(function: FunctionType) -> set[str]:
    """The globals that a function reads, including those in the types of its arguments."""
    loaded = {
        str(instruction.argval)
        for code in codes_in(function.__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME"}
    }
    types = " ".join(str(annotation) for annotation in inspect.get_annotations(function).values())
    return {name for name in loaded | set(re.findall(r"\w+", types)) if name in function.__globals__}


def all_compiled() -> list[FunctionType]:
    """Every compiled function of the modules in cepheid.kernel."""
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(kernel.__path__, "cepheid.kernel.")
    ]
    functions = {
        value.py_func for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)
    }
    return sorted(functions, key=lambda function: (function.__module__, function.__qualname__))


def contained_in(functions: list[FunctionType]) -> set[Name]:
    """The places in the package that define what the functions contain: called functions, values read, types of
    arguments, and everything that these depend on.
    """
    found: set[Name] = set()
    waiting = [(function.__module__, function.__name__) for function in functions]
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        module, name = place
        found.add(place)
        value = getattr(sys.modules[module], name)
        if isinstance(value, Dispatcher):
            assert value.py_func.__closure__ is None, f"{place} is a closure, whose values this test does not see"
            names = names_in(value.py_func)
        else:
            names = read_by(definitions(module)[name])
        waiting += {defined_at(module, other) for other in names} - {None}
    return found


@pytest.fixture(scope="module")
def contained() -> set[Name]:
    return contained_in(all_compiled())


def test_all_that_compiled_functions_contain_is_in_the_fingerprint(contained: set[Name]) -> None:
    """Constants, enums, NamedTuples and functions that compiled functions contain are defined in its files."""
    covered = fingerprinted()
    assert not {f"{module}.{name}" for module, name in contained if path_of(module) not in covered}


def test_the_search_finds_constants_through_imports_and_types(contained: set[Name]) -> None:
    """The search finds a constant used by another constant, an enum, a NamedTuple used only as a type, and one of its
    fields.
    """
    assert {
        ("cepheid.plan.condition_bits", "MAX_CONDITIONS"),
        ("cepheid.plan.occurrences.constants", "Kind"),
        ("cepheid.compile.stages.tables", "Tables"),
        ("cepheid.kernel.stages.layout", "Parked"),
    } <= contained


def test_compiled_functions_read_no_constants_of_modules() -> None:
    """Compiled functions read no attribute of a module of the package, because the search would not follow it."""
    for function in all_compiled():
        read = {name: function.__globals__[name] for name in names_in(function)}
        ours = [name for name, value in read.items() if isinstance(value, ModuleType) and "cepheid" in value.__name__]
        assert not ours, f"{function.__module__}.{function.__name__} reads {ours}"


@pytest.mark.parametrize("name", CONSTANTS)
def test_files_of_constants_import_only_what_is_in_the_fingerprint(name: str) -> None:
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    sources = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {path_of(source) for source in sources if source.startswith("cepheid")} <= set(fingerprinted())


# Changed sources change the name


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package."""
    return Path(shutil.copytree(PACKAGE, tmp_path / "cepheid", ignore=shutil.ignore_patterns("__pycache__")))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_every_file_of_constants_has_a_change_here() -> None:
    assert set(CONSTANTS) <= set(CHANGES)


@pytest.mark.parametrize(("name", "old", "new"), [(name, *texts) for name, texts in CHANGES.items()], ids=CHANGES)
def test_another_constant_is_another_folder(package: Path, name: str, old: str, new: str) -> None:
    assert fingerprint(package) == fingerprint()
    change(package / name, old, new)
    assert fingerprint(package) != fingerprint()


@pytest.mark.parametrize(
    "name", ["kernel/stages/reference.py", "kernel/stages/kernel.py", "plan/stages/plan.py", "compile/script.py"]
)
def test_a_docstring_elsewhere_leaves_the_folder(package: Path, name: str) -> None:
    change(package / name, '"""', '"""Today: ')
    assert fingerprint(package) == fingerprint()


@pytest.mark.parametrize("package", ["numba_version", "llvmlite_version", "numpy_version"])
def test_another_compiler_is_another_folder(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    monkeypatch.setattr(f"cepheid.kernel.jit.{package}", "another")
    assert fingerprint() != before


def test_compiled_functions_in_sub_folders_are_found(package: Path) -> None:
    """A file that is moved within kernel/ remains part of the fingerprint."""
    (package / "kernel" / "elsewhere").mkdir()
    (package / "kernel" / "stages" / "step.py").rename(package / "kernel" / "elsewhere" / "step.py")
    assert "kernel/elsewhere/step.py" in fingerprinted(package)
    assert len(fingerprinted(package)) == len(fingerprinted())


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_missing_or_empty_file_is_an_error(package: Path, name: str) -> None:
    """A file of constants that is missing or empty is reported, not silently ignored."""
    (package / name).write_text("\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=f"{name} is missing or empty"):
        fingerprint(package)
    (package / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name} is missing or empty"):
        fingerprint(package)


def test_no_compiled_functions_are_an_error(package: Path) -> None:
    for name in fingerprinted():
        if name.startswith("kernel/") and name not in {*CONSTANTS, "kernel/jit.py"}:
            (package / name).unlink()
    with pytest.raises(FileNotFoundError, match="no file with compiled functions below"):
        fingerprint(package)


def test_a_process_uses_the_folder_of_its_own_sources(package: Path, tmp_path: Path) -> None:
    """A changed copy of the package writes to a different folder than the package itself."""
    change(package / "plan/occurrences/constants.py", "THEN = 3", "THEN = 9")
    code = "from cepheid.kernel.jit import cache_folder; print(cache_folder())"

    def folder(path: Path) -> Path:
        environment = {**os.environ, "PYTHONPATH": str(path.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return Path(done.stdout.strip())

    assert folder(PACKAGE).name == fingerprint()
    assert folder(package).name == fingerprint(package) != fingerprint()

"""`import cepheid` loads neither Spark nor the compiler, nor what only some patterns need; that is loaded at its first
use.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import cepheid


def modules_after(statement: str) -> set[str]:
    """The modules that a new interpreter has loaded after `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps([*sys.modules]))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(answer.stdout.splitlines()[-1]))


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a new interpreter has loaded after `statement`."""
    return {name.split(".")[0] for name in modules_after(statement)}


def test_import_loads_neither_spark_nor_the_compiler() -> None:
    """`import cepheid` is quick and works without Spark: heavy packages are imported where they are first used. Each
    worker of a stream also imports it when it starts.
    """
    assert (
        loaded_by("import cepheid")
        & {
            "pyspark",
            "py4j",
            "numba",
            "llvmlite",
            "pandas",
            "polars",
            "matplotlib",
            "altair",
            "vl_convert",
            "duckdb",
            "sqlglot",
        }
        == set()
    )


def test_import_loads_no_plans() -> None:
    """`from cepheid import Pattern, detect` loads what a pattern is made of. Plans, knowledge and the readers of files
    are loaded by the calls that need them.
    """
    loaded = modules_after("from cepheid import Pattern, detect")
    assert "cepheid.lang.stages.pattern" in loaded
    first_parts = {name.split(".")[1] for name in loaded if name.startswith("cepheid.")}
    assert not first_parts & {"knowledge", "compile", "kernel", "output", "hosts"}
    kinds = ("cepheid.plan.stages", "cepheid.plan.occurrences", "cepheid.plan.intervals", "cepheid.plan.semantics")
    assert not [name for name in loaded if name.startswith(kinds)]
    assert not loaded & {"pyarrow.compute", "pyarrow.dataset", "yaml", "jsonschema", "rich", "typer"}


def test_help_loads_no_plans() -> None:
    """`cepheid --help` loads the commands and their options, and nothing that they run."""
    loaded = modules_after("from cepheid.cli.app import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass\n")
    assert "typer" in loaded
    assert not loaded & {"pyarrow.compute", "pyarrow.csv", "yaml", "jsonschema", "duckdb", "sqlglot", "numba"}
    assert not [name for name in loaded if name.startswith(("cepheid.knowledge", "cepheid.plan.semantics"))]


def test_one_kind_loads_no_other() -> None:
    """The plan of a pattern of stages loads no plan of another kind."""
    plan = (
        "from cepheid import Pattern, explain\nimport pyarrow as pa\nexplain(Pattern.begin('a').where('x > 1'), events="
    )
    plan += "pa.table({'x': [1], 'at': pa.array([0]).cast(pa.timestamp('us'))}), time='at')"
    loaded = modules_after(plan)
    assert "cepheid.plan.stages.build" in loaded
    assert not loaded & {"cepheid.plan.occurrences.build", "cepheid.plan.intervals.build"}


def test_public_names_are_the_same_at_each_place() -> None:
    """`__all__` has what type checkers see; each public name is what its module has, and `dir` lists it."""
    tree = ast.parse(Path(cepheid.__file__).read_text("utf-8"))
    imports = [
        one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) and str(one.module).startswith("cepheid")
    ]
    modules = {name.name: str(one.module) for one in imports for name in one.names}
    assert sorted(modules) == sorted(cepheid.__all__)
    assert set(cepheid.__all__) <= set(dir(cepheid))
    for name, module in modules.items():
        assert getattr(cepheid, name) is getattr(sys.modules[module], name), name


def test_no_module_hides_a_public_name() -> None:
    """A name that is imported at its first use is not that of a module, which would take its place; `detect` is the
    function, whatever is imported first.
    """
    modules = {module.name for module in iter_modules(cepheid.__path__)}
    assert modules & set(cepheid.__all__) == {"detect"}
    modules_after("import cepheid.streams\nfrom cepheid import detect\nassert callable(detect)")
    modules_after("import cepheid.detect\nassert callable(cepheid.detect)")


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as in any module."""
    modules_after("import cepheid\nassert not hasattr(cepheid, 'Patern')")


def test_public_names_load_without_spark() -> None:
    """Every public name can be imported where PySpark is not installed."""
    without_spark = "import sys\nsys.modules['pyspark'] = None\nfrom cepheid import *"
    assert "numba" not in loaded_by(without_spark)


def test_the_command_line_starts_without_spark() -> None:
    """`cepheid --help` and the in-process commands need no Spark."""
    assert "pyspark" not in loaded_by("import cepheid.cli.app")


def test_a_stream_starts_without_the_compiler() -> None:
    """Whenever a stream with state starts, Spark starts an interpreter in which the processor only names its state.
    There, loading the compiler would take half of the time.
    """
    assert "numba" not in loaded_by("import cepheid.hosts.spark.stream.processor")


def test_workers_are_forked_with_what_they_need() -> None:
    """Workers are forked with the modules that streams with state need, but without DuckDB, which no worker calls."""
    loaded = loaded_by("import sys, cepheid.hosts.spark.worker_daemon\nassert 'pyspark.worker' in sys.modules")
    assert {"pandas", "pyarrow", "numba", "google"} <= loaded
    assert "duckdb" not in loaded

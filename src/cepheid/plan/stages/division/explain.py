"""How the work on one key can be divided, as text."""

from __future__ import annotations

from cepheid.plan.stages.division.slices import slices_text
from cepheid.plan.stages.division.starts import starts_text
from cepheid.plan.stages.division.sub_keys import sub_keys_text
from cepheid.plan.stages.plan import Plan
from cepheid.plan.undivided import division_lines


def division_text(plan: Plan) -> str:
    """For each way to divide a key, whether it fits the pattern and why, one line each."""
    lines = division_lines([sub_keys_text(plan), starts_text(plan), slices_text(plan)])
    return "".join(f"{line}\n" for line in lines)

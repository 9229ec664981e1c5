"""The runner of a pattern of stages, for hosts of live events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.matchers.runners import OrderedRunner
from cepheid.matchers.stages.detector import Detector
from cepheid.output.stages import open_schema, row_schema
from cepheid.plan.stages.plan import Plan


@dataclass(frozen=True)
class StagesRunner(OrderedRunner):
    """A PatternRunner."""

    plan: Plan

    @cached_property
    def compiled(self) -> CompiledPattern:
        return compile_plan(self.plan)

    def detector(self) -> Detector:
        return Detector(self.compiled)

    @property
    def schema(self) -> pa.Schema:
        return row_schema(self.plan)

    @property
    def open_schema(self) -> pa.Schema:
        return open_schema(self.plan)

"""What the compiled kernels of patterns of stages have in common."""

from __future__ import annotations

from typing import Any

from cepheid.compile.stages.compiled import limit_settings
from cepheid.compile.stages.tables import Tables
from cepheid.plan.limits import Limits


class NodeKernel:
    """A kernel whose partial matches are nodes, each with an event."""

    tables: Tables
    cursor: Any

    @property
    def size(self) -> int:
        """The number of nodes in use, including unreachable ones: what `hold` looks through."""
        return int(self.cursor.nodes)

    def limit(self, limits: Limits) -> None:
        """Applies these limits from now on."""
        for name, value in limit_settings(limits).items():
            self.tables.settings[name] = value

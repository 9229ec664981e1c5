"""Events as structs, for hosts that move them between tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from cepheid.events.batch import ORDINAL, SUB_KEY_PREFIX, TIME, Batch
from cepheid.events.time import TIME_TYPE
from cepheid.output.typed import as_typed

EVENT, TAKEN_PREFIX = "event", "taken"
"""The columns of rows between tiers: an event, or the event that each stage has taken."""


@dataclass(frozen=True)
class ShippedEvents:
    """The columns in which a host ships events."""

    layout: Mapping[str, str]
    """A matcher's column → the shipped column that holds it. Several may share a shipped one."""
    columns: pa.Schema
    """The shipped columns."""

    @cached_property
    def type(self) -> pa.StructType:
        """An event between tiers."""
        return pa.struct([*self._kept, pa.field(ORDINAL, pa.int32())])

    def structs(self, batch: Batch) -> pa.Array:
        """The events of a batch with ordinals."""
        # `_time` may be a cast of its shipped column, so another name of that column is preferred.
        names = {shipped: name for name, shipped in sorted(self._layout.items(), key=lambda item: item[0] != TIME)}
        columns = [as_typed(field.type, batch.column(names[field.name])) for field in self._kept]
        return pa.StructArray.from_arrays([*columns, batch.column(ORDINAL)], fields=[*self.type])

    def given(self, column: pa.Array) -> pa.Array:
        """Events that came from the tier before, in their own type: a host may have changed the zones of times."""
        if column.type == self.type:
            return column
        parts = zip(column.flatten(), self.type, strict=True)
        columns = [as_typed(field.type, part) for part, field in parts]
        return pa.StructArray.from_arrays(columns, fields=[*self.type], mask=column.is_null())

    def batch(self, structs: pa.Array) -> Batch:
        """The batch that has these events, which have ordinals."""
        parts = dict(zip((field.name for field in self.type), structs.flatten(), strict=True))
        columns = {name: parts[shipped] for name, shipped in self._layout.items()}
        columns[TIME] = columns[TIME].cast(TIME_TYPE)
        return Batch(pa.record_batch({**columns, ORDINAL: parts[ORDINAL]}))

    @cached_property
    def _layout(self) -> dict[str, str]:
        return {name: shipped for name, shipped in self.layout.items() if not name.startswith(SUB_KEY_PREFIX)}

    @cached_property
    def _kept(self) -> list[pa.Field]:
        used = {*self._layout.values()}
        return [pa.field(field.name, field.type) for field in self.columns if field.name in used]

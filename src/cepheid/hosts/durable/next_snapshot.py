"""A snapshot that is written in pieces, some with each step, while the log goes on: no step waits for a large one."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.hosts.durable.store import ShardWriter
from cepheid.hosts.shards.log import first_head, head_after
from cepheid.hosts.shards.store import Entry, Head

FEW_ENTRIES = 8
"""A log of so many steps is not worth a snapshot, which may cost as much as a step: opening a host repeats them."""
_LARGE = 1 << 20
"""Bytes: a shard whose log may have so many is not written at once. Making a snapshot of a million open partial matches
takes more than a second, and one whose log is full is several times as large as the one before.
"""
_LONGEST = 8
"""So many times longer than it should be, a log is replaced at once: a host that is often opened anew may never come to
the last piece.
"""
_PACE = 1 << 18
"""For so many bytes of an entry one more piece is written, so that the log grows by a bounded part of the snapshot."""


def is_written_at_once(head: Head) -> bool:
    """Whether the snapshot after this head, whose log is full, is written in one step."""
    return head.room < _LARGE or head.log_bytes > _LONGEST * head.room


class NextSnapshot:
    """The snapshot that will replace the present one, with the log's entries up to a certain one."""

    def __init__(self, pieces: Iterator[bytes], entries: int) -> None:
        """The snapshot has the log's first `entries` entries."""
        self._pieces = pieces
        self._since = entries
        self._entries: list[Entry] = []
        self._parts = self._bytes = 0
        self.is_written = False

    def follow(self, store: ShardWriter, entry: Entry | None, head: Head) -> Head:
        """Writes some pieces, after a step that has appended the entry and made `head`. Returns the head: once all
        pieces are written, that of this snapshot and the entries since.
        """
        if entry is not None:
            self._entries.append(entry)
        for _ in range(1 + (0 if entry is None else len(entry.events) // _PACE)):
            piece = next(self._pieces, None)
            if piece is None:
                return self._put_in_place(store, head)
            if piece:
                store.write_part(self._parts, piece)
                self._parts, self._bytes = self._parts + 1, self._bytes + len(piece)
        return head

    def _put_in_place(self, store: ShardWriter, head: Head) -> Head:
        after = first_head(self._bytes, head.reached, head.open, head.timer)
        for entry in self._entries:
            after = head_after(after, entry, head.reached, head.open, head.timer)
        store.put_in_place(after, self._since, head)
        self.is_written = True
        return after

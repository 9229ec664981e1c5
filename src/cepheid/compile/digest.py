"""A digest of what the numbers in a matcher's state stand for, so that state is never read with another meaning."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

_SIZE = 16
_PURPOSE = b"cepheid layout1"
"""The number changes whenever the digested form changes, so that a digest never has two meanings."""


def digest_of(layout: dict[str, Any]) -> str:
    """The digest of the layout: 128 bits in hexadecimal."""
    text = json.dumps(layout, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=_SIZE, person=_PURPOSE).hexdigest()

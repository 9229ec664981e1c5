"""How many conditions on single events fit into one word of an event's mask. Compiled functions contain the number."""

from __future__ import annotations

MAX_CONDITIONS = WORD = 63
"""Each condition is one bit of a word. The last bit stands for what is always true."""

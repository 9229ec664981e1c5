"""Constant texts that SQL casts to other types: their values, and the problems in them."""

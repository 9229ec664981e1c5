"""Filters over knowledge: their text, their built-ins, and the assignments that make them true."""

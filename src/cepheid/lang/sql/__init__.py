"""The SQL of conditions and measures: tokens, parser, functions."""

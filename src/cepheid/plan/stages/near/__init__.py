"""Near misses: the changes of a pattern under which a start would match, and the parts of conditions that are shown."""

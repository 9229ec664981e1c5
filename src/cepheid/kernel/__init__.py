"""The hot loop: the definition in plain Python (reference) and the same, compiled (step)."""

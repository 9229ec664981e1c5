"""How messages reach their targets: one module for each kind."""

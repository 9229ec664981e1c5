"""How the work on one key can be divided, found in the plan: one module for each way."""

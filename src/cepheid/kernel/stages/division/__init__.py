"""The state of kernels divided by key, and joined again."""

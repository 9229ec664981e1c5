"""Where a matcher runs: a host adds delivery, never meaning."""

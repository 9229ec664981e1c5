"""Events that several matchers hold together."""

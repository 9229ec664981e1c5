"""Routing: what a host finds goes from its outbox to those who subscribed, beside the matching."""

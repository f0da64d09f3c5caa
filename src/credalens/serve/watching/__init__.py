"""Seen from outside: what a server counts, for Prometheus, for a page and for its log."""

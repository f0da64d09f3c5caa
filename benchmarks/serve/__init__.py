"""A server under load, beside others that serve the same arithmetic."""

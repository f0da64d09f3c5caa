"""Requests gathered into batches, predicted together, and answered one by one."""

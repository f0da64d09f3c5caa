"""Promises about error rates: what is asked, how it is tested, and why it may fail."""

"""These scripts are for environments with nothing but a wheel in them: `make smoke-base`, and one for each extra."""

collect_ignore_glob = ["*.py", "typed/*.py"]

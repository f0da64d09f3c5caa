"""The pages and pictures beside the result files."""

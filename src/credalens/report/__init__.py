"""Figures, tables and the HTML report: arrays in, matplotlib Axes, files or text out."""

"""The paper as a program: its numbers, data sets, corruptions, backbones, tables and figures."""

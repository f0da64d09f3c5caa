"""Result files as Markdown."""

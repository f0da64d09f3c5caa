"""Single inputs: which ones are worth a look, what their members say, and how to show it with few classes."""

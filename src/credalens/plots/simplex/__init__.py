"""Three classes in the triangle."""

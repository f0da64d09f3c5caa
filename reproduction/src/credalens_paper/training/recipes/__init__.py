"""How each method is trained: what it minimises, by which optimiser, at which rates."""

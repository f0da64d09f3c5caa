"""What every kernel builds on: compilation, vectors of eight numbers, phi."""

"""From declarations to numbers: train, predict, evaluate, each once."""

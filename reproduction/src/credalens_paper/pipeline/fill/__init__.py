"""From what is declared to its result: tables, figures, intervals over inputs, and what exactness changes."""

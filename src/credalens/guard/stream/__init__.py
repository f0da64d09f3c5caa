"""The parts of a drift alarm: p-values of a stream, and a player who bets against them."""

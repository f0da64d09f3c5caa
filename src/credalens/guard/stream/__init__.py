"""What a drift alarm is made of: p-values of a stream, and a player who bets against them."""

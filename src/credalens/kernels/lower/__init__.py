"""Lower entropy: exact minimisation of a concave function, with a certificate."""

"""Lower entropy: minimisation of a concave function, with a certificate."""

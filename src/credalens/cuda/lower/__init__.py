"""Lower entropy, as ``kernels/lower``: the root certifies most rows, branch and bound searches the others."""

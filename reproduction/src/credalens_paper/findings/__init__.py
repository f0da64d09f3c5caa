"""What the results say about the paper's claims."""

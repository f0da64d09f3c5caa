"""What is measured: tables and figures declared, the paper's numbers, the presets."""

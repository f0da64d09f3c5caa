"""All of a credal prediction but the lower entropy, as ``kernels/decompose.py``; a file for each kind of members."""

"""Examples of `dotphase.heads`: the solvable model, a small transformer, a pretrained encoder."""

"""One step of replica symmetry breaking: its equations, the way along y, and what it gives."""

"""One step of replica symmetry breaking: its equations, continuation in y, and results."""

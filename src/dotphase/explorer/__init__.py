"""The explorer: an interactive page in the browser on the phase transition."""

"""What the documentation site needs beyond Sphinx."""

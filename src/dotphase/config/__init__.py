"""Settings, parameters, validation and formatting of values."""

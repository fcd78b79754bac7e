"""Baselines that attention is measured against, all through `baseline`."""

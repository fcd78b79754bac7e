"""Tables of token embeddings, prepared for `dotphase.analysis.train_on_table`."""

from dotphase.finite_d.embeddings import (
    Tokens,
    gaussian_like,
    installed_table,
    prepare_table,
    read_safetensors,
)

__all__ = ["Tokens", "gaussian_like", "installed_table", "prepare_table", "read_safetensors"]

"""The recipes of the page for PyTorch and Hugging Face, where these are installed."""

import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import dotphase as dp

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/heads.md"
RECIPES = re.findall(r"^```\{code-block\} python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def test_the_recipe_for_a_module_of_ones_own():
    torch = pytest.importorskip("torch")

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
            self.dropout = torch.nn.Dropout(0.1)

        def forward(self, x):
            query, key = (part(x).unflatten(-1, (2, 4)) for part in (self.query, self.key))
            scores = torch.einsum("nqhc,nkhc->nhqk", query, key)
            causal = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
            self.dropout(scores.masked_fill(causal, -torch.inf).softmax(-1))
            return x

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.positions = torch.nn.Embedding(9, 8), torch.nn.Embedding(6, 8)
            self.layers = torch.nn.ModuleList([Attention(), Attention()])

        def forward(self, tokens):
            x = self.embedding(tokens)
            for layer in self.layers:
                x = layer(x)

    torch.manual_seed(0)
    model = Model().eval()
    names = {"model": model, "tokens": torch.randint(9, (200, 6)), "h": 1, "w": 4}
    with patch.object(dp.plot, "heads"):
        exec(RECIPES[0], names)
    # Without encodings attention is a function of the tokens alone.
    assert (names["heads"].verdict == "semantic").all() and names["heads"].rest.shape == (2, 2)
    assert np.all(names["heads"].distance["semantic"] < 1e-3)
    names |= {"layer": model.layers[0], "positions": model.positions, "embedding": model.embedding}
    exec(RECIPES[4], names)
    assert 0 < names["form"].positional < 1


def test_the_recipe_for_multihead_attention():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(9, 8), layer).eval()
    model.layers = [layer]
    names = {"model": model, "tokens": torch.randint(9, (200, 6))}
    exec(RECIPES[1], names)
    assert names["heads"].verdict.tolist() == ["semantic", "semantic"]


def test_the_recipe_for_hugging_face():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=9, intermediate_size=16, **small)
    model = transformers.BertModel(config).eval()
    tokens = torch.randint(9, (120, 6))
    mask = torch.ones_like(tokens)
    mask[::2, 5] = 0
    names = {"model": model, "tokens": tokens, "mask": mask}
    exec(RECIPES[2], names)
    heads = names["heads"]
    assert heads.positional.shape == (2, 2) and isinstance(heads, dp.heads.HeadShares)
    total = heads.positional + heads.semantic + heads.interaction + heads.rest
    np.testing.assert_allclose(total, 1)
    loader = zip(tokens.split(40), mask.split(40), strict=True)
    names |= {"loader": loader, "tokenizer": SimpleNamespace(vocab_size=9)}
    exec(RECIPES[3], names)
    assert names["heads"].positional.shape == (2, 2)

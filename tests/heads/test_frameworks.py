"""The recipes of the page for PyTorch and Hugging Face, where these are installed."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/heads.md"
RECIPES = re.findall(r"^```\{code-block\} python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def test_the_recipe_for_pytorch():
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(9, 8)
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.layers = torch.nn.ModuleList([layer])

        def forward(self, tokens):
            return self.layers[0](self.embedding(tokens))

    torch.manual_seed(0)
    model = Model().eval()
    tokens = torch.randint(9, (200, 6))
    names = {"model": model, "tokens": tokens}
    exec(RECIPES[0], names)
    # Without encodings attention is a function of the tokens alone.
    assert names["heads"].verdict.tolist() == ["semantic", "semantic"]
    assert np.all(names["heads"].distance["semantic"] < 1e-3)


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
    exec(RECIPES[1], names)
    heads = names["heads"]
    assert heads.positional.shape == (2, 2) and isinstance(heads, dp.heads.HeadShares)
    total = heads.positional + heads.semantic + heads.interaction + heads.rest
    np.testing.assert_allclose(total, 1)
    loader = zip(tokens.split(40), mask.split(40), strict=True)
    names |= {"loader": loader, "tokenizer": SimpleNamespace(vocab_size=9)}
    exec(RECIPES[2], names)
    assert names["heads"].positional.shape == (2, 2)

"""Which mechanism has an attention head? Shares by position and by content, for any layer.

import dotphase as dp

# attention[sentence, head, query, key], tokens[sentence, position]
heads = dp.heads.shares(attention, tokens=tokens)
print(heads)
"""

from dotphase.heads.result import HeadShares
from dotphase.heads.shares import shares
from dotphase.heads.solvable import solution_shares, solvable
from dotphase.heads.source import ShareSettings, read
from dotphase.heads.weights import query_key

__all__ = [
    "HeadShares", "ShareSettings", "query_key", "read", "shares", "solution_shares", "solvable"
]  # fmt: skip

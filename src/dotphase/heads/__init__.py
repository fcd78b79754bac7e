"""Which mechanism has an attention head? Shares by position and by content, for any layer."""

from dotphase.heads.shares import HeadShares, shares
from dotphase.heads.solvable import query_key, solution_shares, solvable
from dotphase.heads.source import ShareSettings, read

__all__ = [
    "HeadShares", "ShareSettings", "query_key", "read", "shares", "solution_shares", "solvable"
]  # fmt: skip

"""Style and plotting functions shared by the figures."""

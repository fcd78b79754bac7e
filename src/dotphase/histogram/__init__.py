"""The histogram task: a small transformer that counts in one of two ways.

import dotphase as dp

result = dp.histogram.run("both", runs=1, epochs=20, target=0.998)
dp.histogram.attention(result.network("semantic"), "BBCCDDBBBB")
dp.histogram.predict(dp.histogram.shipped("positional"), "BBCCDDBBBB")
"""

from dotphase._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

"""A package, so that what its tests share (the explorer, the browser) ends with the last of them."""

"""A package, so that what its tests share (explorer, browser) ends with the last of them."""

"""The numbers that the authors of arXiv:2402.03902 released, made again and compared."""

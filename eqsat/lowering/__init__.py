"""Kernels as C: how their loops run, and what is computed in which."""

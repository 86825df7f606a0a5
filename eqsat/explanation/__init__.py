"""Derivations: from an input to its result, step by step."""

"""How far answers are from the least: terms of a case are enumerated, and those that cost less than its answer are found.

``search`` enumerates, ``cases`` chooses a bundled sample, ``__main__`` measures it and writes ``docs/optimum.md``.
"""

"""The comparison: eqsat by every engine and extractor, the greedy baseline and the peers, on the same cases in one run.

``solvers`` are what is compared, ``run`` asks them all and writes a row per case, ``orders`` and ``greedy_steps`` study
what the order of rules and operands decides, and ``report`` makes Markdown and HTML of all that, with the help of
``summary`` (the figures) and ``plots``. ``benchmarks/bench.py`` is the command.
"""

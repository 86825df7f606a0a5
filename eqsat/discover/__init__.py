"""The cheapest term equal to another, by enumeration, and the rules that would have found it.

Imports ``optimizer``, ``prove``, ``egraph``, ``rules``, ``lang`` and ``extract``.
"""

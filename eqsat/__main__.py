"""``python -m eqsat``: the command line."""

from eqsat.cli import main

main()

"""``python -m eqsat``: the command line."""

from eqsat.cli.main import main

main()

"""The command ``eqsat``: it imports the command line late, so that Ctrl-C is one line from the start."""

import sys


def main() -> None:
    """Import the command line and run it."""
    try:
        from eqsat.cli.main import main as run
    except KeyboardInterrupt:
        print("eqsat: interrupted", file=sys.stderr)
        sys.exit(130)
    run()

"""What tests of the command line share."""

import pytest

from eqsat.cli import main as cli


@pytest.fixture
def eqsat(capsys):
    """Run the command line in this process: its exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as done:
            cli.main(arguments)
        captured = capsys.readouterr()
        return int(done.value.code or 0), captured.out, captured.err

    return call

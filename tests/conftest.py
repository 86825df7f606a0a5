"""Settings for every test: examples are drawn the same way each time, and nothing depends on the clock."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from eqsat.cli import main as cli
from eqsat.optimizer.front import DEFAULT_BUDGET

settings.register_profile(
    "eqsat", deadline=None, derandomize=True, print_blob=True, suppress_health_check=list(HealthCheck)
)
settings.load_profile("eqsat")

# what is told no budget is to be answered the same on a busy machine
object.__setattr__(DEFAULT_BUDGET, "seconds", 10.0)

# a shell that starts the tests in the background has it ignored, by all that they start too
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--kernels",
        type=int,
        default=40,
        help="how many random kernels run under the sanitizers and with every compiler",
    )
    parser.addoption("--screenshots", metavar="DIRECTORY", help="where the browser's screenshots are written")


@pytest.fixture
def eqsat(capsys):
    """Run the command line in this process: its exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as done:
            cli.main(arguments)
        captured = capsys.readouterr()
        return int(done.value.code or 0), captured.out, captured.err

    return call

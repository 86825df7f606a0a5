"""Settings for every test: examples are drawn the same way each time, without a clock."""

from hypothesis import settings

settings.register_profile("eqsat", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("eqsat")


def pytest_addoption(parser):
    parser.addoption(
        "--kernels",
        type=int,
        default=40,
        help="how many random kernels run under the sanitizers and with every compiler",
    )

"""egglog's extension module is loaded alone, and whoever imports the package finds it there."""

import subprocess
import sys

from eqsat.egraph.bindings import WarmProgram

ANSWER = "assert str(optimize('(i*6 + j)//6', i=(0, 9), j=(0, 5), theory=False).expr) == 'i'"


def test_an_answer_does_not_import_the_package() -> None:
    in_a_new_process(f"import sys\nfrom eqsat import optimize\n{ANSWER}\nassert 'egglog' not in sys.modules")


def test_the_package_can_be_imported_afterwards() -> None:
    in_a_new_process(
        f"from eqsat import optimize\n{ANSWER}\nimport egglog\nimport egglog.bindings as bindings\n"
        "assert egglog.bindings is bindings\negglog.EGraph().run(1)\nbindings.EGraph()"
    )


def test_the_package_can_be_imported_before() -> None:
    in_a_new_process(
        f"import egglog\nfrom eqsat import optimize\n{ANSWER}\nfrom eqsat.egraph.bindings import bindings\n"
        "assert bindings() is egglog.bindings"
    )


def test_an_interrupt_while_egglog_runs_is_raised_as_it_is() -> None:
    in_a_new_process(
        "import logging\nfrom eqsat import optimize\n"
        "def interrupted(*_):\n    raise KeyboardInterrupt\n"
        "logging.Logger.isEnabledFor = interrupted\n"
        f"try:\n    {ANSWER}\nexcept KeyboardInterrupt:\n    pass\nelse:\n    raise AssertionError"
    )


def test_an_interrupt_while_egglog_is_loaded_does_not_keep_it_from_being_loaded() -> None:
    in_a_new_process(
        "import os, signal\nfrom eqsat import optimize\nfrom eqsat.egraph import bindings\n"
        "made = bindings.module_from_spec\n"
        "def interrupted(spec):\n"
        "    module = made(spec)\n    os.kill(os.getpid(), signal.SIGINT)\n    return module\n"
        "bindings.module_from_spec = interrupted\n"
        f"try:\n    {ANSWER}\nexcept KeyboardInterrupt:\n    pass\nelse:\n    raise AssertionError\n"
        f"{ANSWER}"
    )


def test_a_program_that_is_worn_out_stays_so_when_it_reads_more_rules() -> None:
    program = WarmProgram("(sort E)", lasts=10)
    program.wear(matches=2)
    assert program.is_worn
    program.extend("(ruleset more)")
    assert program.is_worn


def in_a_new_process(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True)

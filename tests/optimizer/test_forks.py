"""Processes that are forked from one that has optimised: each has sessions of its own, and no lock of another."""

import subprocess
import sys

POOL = """
import multiprocessing, os, sys, threading
from eqsat import optimize, var

def ask(k):
    roots = [f"x//{k} + (x%{k})//{k + 1}", f"x%{k} + {k}*(x//{k}%3)", f"min(x, {k}*n)//{k}"]
    return [str(term) for term in optimize(roots, x=(0, 999), n=(0, 99), theory=False).exprs]

if __name__ == "__main__":
    numbers = [k for k in range(3, 15) for _ in range(6)]
    wanted = {k: ask(k) for k in numbers}
    with multiprocessing.get_context("fork").Pool(3) as pool:
        answers = pool.map(ask, numbers, chunksize=1)
        pool.close()
        pool.join()
    assert answers == [wanted[k] for k in numbers]
    # a child that ends leaves the files of its parent
    if os.fork() == 0:
        ask(3)
        sys.exit(0)
    os.wait()
    assert ask(3) == wanted[3]
"""

THREADS = """
import os, threading
from eqsat import var

stopped = threading.Event()

def build():
    n = 0
    while not stopped.is_set():
        n += 1
        term = var(f"v{n}", 0, 9) + n

others = [threading.Thread(target=build) for _ in range(2)]
for other in others:
    other.start()
children = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        for n in range(20000):
            var(f"w{n}", 0, 9) * n
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
stopped.set()
"""


def run(program, folder):
    return subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-W", "ignore::DeprecationWarning", "-c", program],
        env={"TMPDIR": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_forked_workers_answer_as_their_parent_and_leave_nothing(tmp_path):
    done = run(POOL, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.glob("eqsat-*"))


def test_a_process_that_is_forked_while_threads_build_terms_goes_on(tmp_path):
    done = run(THREADS, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")

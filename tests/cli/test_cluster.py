"""A corpus over a cluster of local processes, of which some are killed."""

import json
import os
import signal

import pytest
from click.testing import CliRunner

from eqsat.cli.main import app
from eqsat.cli.settings import Settings

distributed = pytest.importorskip("distributed", reason="Dask distributed is not installed")

LINES = [
    json.dumps({"id": n, "vars": {"i": [0, 31], "j": [0, n]}, "exprs": [f"(i*{n + 1} + j) // {n + 1}"]})
    for n in range(60)
]


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="CRITICAL"
    ) as found:
        yield found


def test_rows_are_in_order_and_none_is_lost_when_workers_are_killed(cluster):
    from eqsat.cli.corpus import run_on_cluster

    rows = []
    for row in run_on_cluster(LINES, Settings(), cluster.scheduler_address):
        rows.append(row)
        if len(rows) in (5, 25):
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
    assert [row["id"] for row in rows] == [*range(60)]
    assert {tuple(row["out"]) for row in rows} == {("i",)}


def test_the_command_line_gives_a_corpus_to_a_cluster(cluster, tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join([*LINES[:5], "half"]))
    options = ["corpus", str(source), "-o", str(output), "--scheduler", cluster.scheduler_address]
    done = CliRunner().invoke(app, options)
    assert (done.exit_code, done.stderr) == (0, "# 6 cases, 1 error\n")
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4, "line 6"]


def test_without_a_scheduler_the_message_says_how_to_start_one(tmp_path, monkeypatch):
    monkeypatch.setattr("eqsat.cli.corpus.PATIENCE", 1)
    (tmp_path / "in.jsonl").write_text(LINES[0])
    done = CliRunner().invoke(app, ["corpus", str(tmp_path / "in.jsonl"), "--scheduler", "tcp://127.0.0.1:1"])
    assert "no scheduler answers at tcp://127.0.0.1:1: start one by dask scheduler" in str(done.exception)

"""The reproduction of the paper's experiments: data, records, the runner, the command and its page."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress
from scipy.spatial.distance import pdist, squareform

import naive
from evertree import Hierarchy, agglomerate
from evertree.errors import ParameterError
from helpers import nested
from paper import figures, reproduce, runner, section5, statements
from paper.fits import fit_log_growth, fit_power_law
from paper.questions import (
    QUESTIONS,
    growth,
    insertion_orders,
    metric_learning,
    orders,
    over_time,
    random_single,
)
from paper.study import Records, Settings, Study, check_settings, write_table

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("data", ["uniform", pytest.param("mnist", marks=pytest.mark.slow)])
def test_a_pairing_by_hand(data):
    """The numbers of a case are those of the public calls, and the correlation is the paper's formula."""
    rows = section5.run_pairing(Settings(), (data, 20, 3))
    assert [row[:2] for row in rows] == [(x, m) for x in section5.LINKAGES for m in ("HAC", "AHC", "IHC")]
    found = {row[:2]: row[2:] for row in rows}
    X, seed = section5.draw(Settings(), data, 20, 3)
    d = squareform(pdist(X))
    for linkage in section5.LINKAGES:
        ahc = Hierarchy.random(X, linkage, goal="homogeneous", seed=seed)
        ahc.refine()
        ihc = Hierarchy(linkage, goal="homogeneous")
        for x in X:
            ihc.insert([x])
        for method, h in (("HAC", agglomerate(X, linkage, goal="homogeneous")), ("AHC", ahc), ("IHC", ihc)):
            zeta = naive.average(d) if linkage == "ward" else getattr(naive, linkage)(d)
            u = naive.cophenetic(nested(h), zeta, monotone=False)
            assert found[linkage, method] == (h.n_moves, pytest.approx(np.corrcoef(d.ravel(), u.ravel())[0, 1])), method
        assert found[linkage, "HAC"][0] == 0
    assert found["single", "AHC"][1] == pytest.approx(found["single", "HAC"][1])


def test_pairings_differ_and_have_seeds():
    first = section5.draw(Settings(), "uniform", 10, 0)
    again = section5.draw(Settings(), "uniform", 10, 0)
    np.testing.assert_array_equal(first[0], again[0])
    assert first[1] == again[1]
    for other in (
        section5.draw(Settings(), "uniform", 10, 1),
        section5.draw(Settings(seed=1), "uniform", 10, 0),
    ):
        assert not np.array_equal(first[0], other[0])
        assert first[1] != other[1]


@pytest.mark.slow
def test_random_trees_have_the_right_number_of_cherries():
    """Pairs of leaves that are siblings: n (n − 1) / (2 (2 n − 3)) on average over all hierarchies of n points."""
    n, repetitions = 20, 400
    counts = []
    for repetition in range(repetitions):
        X, seed = section5.draw(Settings(), "uniform", n, repetition)
        Z = Hierarchy.random(X, "ward", goal="homogeneous", seed=seed).linkage_matrix()
        counts.append(np.count_nonzero(Z[:, 3] == 2))
    expected = n * (n - 1) / (2 * (2 * n - 3))
    assert abs(np.mean(counts) - expected) < 4 * np.std(counts) / np.sqrt(repetitions)


def test_fits(rng):
    n = np.array([10, 100, 1000])
    law = fit_power_law(n, np.repeat((3 * n**1.5)[:, None], 4, axis=1))
    assert (law.factor, law.exponent) == (pytest.approx(3), pytest.approx(1.5))
    assert law.error == pytest.approx(0, abs=1e-9)
    line = fit_log_growth(n, np.repeat((n * (2 + 0.5 * np.log2(n)))[:, None], 4, axis=1))
    assert (line.constant, line.slope, line.explained) == (pytest.approx(2), pytest.approx(0.5), pytest.approx(1))
    # Counts that scatter by a tenth in 25 runs: the mean of each by a fiftieth, and the slope as theory has it.
    noisy = fit_power_law(n, n[:, None] * (1 + 0.1 * rng.normal(size=(3, 25))))
    assert noisy.error == pytest.approx(0.02 / (np.log(10) * np.sqrt(2)), rel=0.5)
    assert fit_power_law(n, np.array([[0.0], [0.0], [5.0]])) is None
    assert fit_power_law(n, np.array([[0.0], [10.0], [100.0]])).exponent == pytest.approx(1)


def invented(moves, correlation, repetitions=5):
    """Results in which every run of a method and linkage gives the same."""
    keys = [(d, x, m) for d in section5.DATA for x in section5.LINKAGES for m in section5.METHODS]
    n = np.array(section5.SIZES, np.float64)[:, None]
    ones = np.ones((1, repetitions))
    noise = 1e-6 * np.arange(repetitions)
    return section5.Results(
        {key: moves(*key, n) * ones for key in keys},
        {key: correlation(*key) * np.ones_like(n) * ones + noise for key in keys},
        repetitions,
    )


def moves_like(single, others, ratio):
    def moves(data, linkage, method, n):
        growth = n ** (single if linkage == "single" else others)
        return {"HAC": 0 * n, "AHC": ratio * growth, "IHC": growth}[method]

    return moves


def correlations(poor, good, mnist_is_better=0.3):
    """HAC has 0.5; complete and minimax linkage, and average and Ward, differ from it by this for (AHC, IHC)."""

    def correlation(data, linkage, method):
        change = {"single": (0, 0), "complete": poor, "minimax": poor}.get(linkage, good)
        return 0.5 + mnist_is_better * (data == "mnist") + {"HAC": 0, "AHC": change[0], "IHC": change[1]}[method]

    return correlation


#: What each statement demands of results, just met and just missed.
AS_STATED = (moves_like(2, 1, 10), correlations((-0.1, -0.05), (-0.015, -0.01)))
STATED = [
    (0, (moves_like(2, 1, 3.2), AS_STATED[1]), (moves_like(2, 1, 3.1), AS_STATED[1])),
    (0, (moves_like(2, 1, 31), AS_STATED[1]), (moves_like(2, 1, 32), AS_STATED[1])),
    (1, (moves_like(1.76, 1, 10), AS_STATED[1]), (moves_like(1.74, 1, 10), AS_STATED[1])),
    (1, (moves_like(2.24, 1, 10), AS_STATED[1]), (moves_like(2.26, 1, 10), AS_STATED[1])),
    (2, (moves_like(2, 1.74, 10), AS_STATED[1]), (moves_like(2, 1.76, 10), AS_STATED[1])),
    (3, (moves_like(2, 1.24, 10), AS_STATED[1]), (moves_like(2, 1.26, 10), AS_STATED[1])),
    (5, (AS_STATED[0], correlations((-0.021, -0.021), (0, 0))), (AS_STATED[0], correlations((-0.019, -0.019), (0, 0)))),
    (6, (AS_STATED[0], correlations((0, 0), (-0.019, -0.019))), (AS_STATED[0], correlations((0, 0), (-0.021, -0.021)))),
    (
        7,
        (AS_STATED[0], correlations((-0.1, -0.09), (-0.02, -0.01))),
        (AS_STATED[0], correlations((0, -0.01), (0, -0.01))),
    ),
    (8, (AS_STATED[0], correlations((0, 0), (0, 0), 0.01)), (AS_STATED[0], correlations((0, 0), (0, 0), -0.01))),
]


def test_statements_as_stated():
    for statement in statements.STATEMENTS:
        finding = statement.find(invented(*AS_STATED))
        assert finding.verdict == f"holds in all {finding.cases} cases", statement.claim


@pytest.mark.parametrize(("number", "met", "missed"), STATED)
def test_statements_on_both_sides_of_their_limits(number, met, missed):
    statement = statements.STATEMENTS[number]
    finding = statement.find(invented(*met))
    assert finding.verdict == f"holds in all {finding.cases} cases"
    finding = statement.find(invented(*missed))
    assert finding.verdict == f"holds in none of {finding.cases} cases"


def test_a_difference_within_its_error_does_not_count(rng):
    results = invented(*AS_STATED, repetitions=20)
    for key, values in results.correlation.items():
        values += 0.2 * rng.normal(size=values.shape)
        assert key in results.correlation
    finding = statements.STATEMENTS[7].find(results)
    assert finding.holds < finding.cases / 2


def test_single_linkage_that_differs_is_noticed():
    results = invented(*AS_STATED)
    results.correlation["mnist", "single", "IHC"][4, 2] += 1e-8
    finding = statements.STATEMENTS[4].find(results)
    assert (finding.holds, finding.cases) == (3, 4)


def test_cells_without_moves_are_not_judged():
    def moves(data, linkage, method, n):
        return 0 * n if method == "IHC" else AS_STATED[0](data, linkage, method, n)

    for number, cases in ((0, 0), (1, 2), (2, 8)):
        finding = statements.STATEMENTS[number].find(invented(moves, AS_STATED[1]))
        assert finding.cases == cases
        assert "not judged" in finding.details


def draw_number(settings, case):
    return [("x", settings.rng(*case).random()), ("y", float("nan") if case[0] == 3 else 1.5)]


def small_study(n, **options):
    return Study("numbers", "Numbers", ("case",), ("name", "value"), [(i,) for i in range(n)], draw_number, **options)


def run_quietly(study, records, n_jobs=1, settings=None):
    with Progress(console=Console(file=io.StringIO())) as progress:
        runner.run(study, settings or Settings(), records, n_jobs, progress)


def test_records_survive_a_torn_line(tmp_path):
    study = small_study(6)
    records = Records(tmp_path, study)
    run_quietly(study, records)
    whole = (tmp_path / "numbers.jsonl").read_bytes()
    (tmp_path / "numbers.jsonl").write_bytes(whole[:-5])
    records = Records(tmp_path, study)
    assert [case for case in range(6) if (case,) not in records] == [1]  # the first comes first, and then the last
    run_quietly(study, records)
    assert (tmp_path / "numbers.jsonl").read_bytes() == whole


def test_what_is_done_is_not_run_again(tmp_path):
    records = Records(tmp_path, small_study(3))
    run_quietly(small_study(3), records)

    def refuse(settings, case):
        assert case[0] >= 3
        return draw_number(settings, case)

    study = Study("numbers", "Numbers", ("case",), ("name", "value"), [(i,) for i in range(5)], refuse, at_once=2)
    records = Records(tmp_path, study)
    run_quietly(study, records)
    write_table(tmp_path / "numbers.csv", study, records)
    with (tmp_path / "numbers.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["case", "name", "value"]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(5) for _ in range(2)]
    assert float(rows[1][2]) == Settings().rng(0).random()


@pytest.mark.parametrize("content", ["hello\n", "[1]\n", "[[1], [[2]]]\n", "[[1], 5]\n", "{}\n"])
def test_damaged_records(tmp_path, content):
    (tmp_path / "numbers.jsonl").write_text(content)
    with pytest.raises(ParameterError, match="is damaged: remove it to run that part again"):
        Records(tmp_path, small_study(1))


def test_other_settings_are_refused(tmp_path):
    check_settings(tmp_path / "progress", {"seed": 0, "mnist": "a"})
    check_settings(tmp_path / "progress", {"seed": 0, "mnist": "a"})
    with pytest.raises(ParameterError, match="made with another seed: choose another --output, or remove"):
        check_settings(tmp_path / "progress", {"seed": 1, "mnist": "a"})
    (tmp_path / "progress" / "settings.json").write_text("[")
    with pytest.raises(ParameterError, match="damaged"):
        check_settings(tmp_path / "progress", {"seed": 0, "mnist": "a"})
    (tmp_path / "progress" / "settings.json").unlink()
    (tmp_path / "progress" / "numbers.jsonl").write_text("")
    with pytest.raises(ParameterError, match="not the settings"):
        check_settings(tmp_path / "progress", {"seed": 0, "mnist": "a"})


@pytest.mark.process
def test_workers_end_with_the_first_process(tmp_path):
    """However that ends: kill -9 leaves it no time to tell them."""
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]; import pathlib\n"
        "from test_reproduce import *\n"
        "study = Study('numbers', 'Numbers', ('case',), (), [(i,) for i in range(50)], wait_for_ever)\n"
        "if __name__ == '__main__':\n"
        "    run_quietly(study, Records(pathlib.Path(sys.argv[1]), study), 2)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    folder = tmp_path / "out"
    places = [PROJECT, PROJECT / "tests" / "support", PROJECT / "tests" / "paper"]
    with subprocess.Popen([sys.executable, script, folder, *places]) as process:
        until = time.monotonic() + 60
        while len(list(tmp_path.glob("worker-*"))) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        process.kill()
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")]
    assert len(workers) == 2
    until = time.monotonic() + 20
    while any(is_running(worker) for worker in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(is_running(worker) for worker in workers)


def wait_for_ever(settings, case):
    if case[0]:
        (Path(sys.argv[1]).parent / f"worker-{os.getpid()}").touch()
        time.sleep(600)
    return []


def is_running(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process_id}/stat")  # one that has ended may wait for somebody to ask how
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.process
@pytest.mark.parametrize("is_timed", [False, True])
def test_processes_give_the_same_numbers(tmp_path, is_timed):
    study = small_study(50, is_timed=is_timed)
    for n_jobs in (1, 2):
        records = Records(tmp_path / str(n_jobs), study)
        run_quietly(study, records, n_jobs)
        write_table(tmp_path / f"{n_jobs}.csv", study, records)
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


def fail(settings, case):
    if case[0]:
        raise RuntimeError("no")
    return []


@pytest.mark.process
def test_an_error_in_another_process_ends_the_run(tmp_path):
    study = Study("numbers", "Numbers", ("case",), (), [(i,) for i in range(500)], fail)
    records = Records(tmp_path, study)
    with pytest.raises(RuntimeError, match="no"):
        run_quietly(study, records, 2)


def words(folder, *arguments):
    return [sys.executable, "-m", "paper.reproduce", "--output", str(folder), *arguments]


def run_command(folder, *arguments):
    return subprocess.run(words(folder, *arguments), capture_output=True, text=True, cwd=PROJECT)


@pytest.mark.slow
@pytest.mark.process
def test_small_run(tmp_path):
    """The command end to end: stopped by Ctrl-C, resumed, extended by more repetitions; the same as in one go."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": PROJECT}
    with subprocess.Popen(words(tmp_path / "a", "--repetitions", "20"), **options) as process:
        records = tmp_path / "a" / "progress" / "runs.jsonl"
        until = time.monotonic() + 600
        while not (records.exists() and records.stat().st_size > 5000) and time.monotonic() < until:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in errors
    assert "Traceback" not in errors
    n_done = len(records.read_text().splitlines())
    assert 0 < n_done < 400
    assert not (tmp_path / "a" / "report.md").exists()

    for folder, repetitions in (("a", 2), ("a", 3), ("b", 3)):
        result = run_command(tmp_path / folder, "--repetitions", str(repetitions))
        assert result.returncode == 0, result.stderr
        assert "report.md" in result.stdout
    names = [path.name for path in (tmp_path / "b").iterdir() if path.is_file()]
    wanted = [f"figure{k}.{kind}" for k in (3, 4, 5, 6) for kind in ("csv", "png")]
    assert sorted(names) == sorted(["report.md", "runs.csv", *wanted])
    for name in names:
        if not name.endswith(".png"):
            assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name

    with (tmp_path / "b" / "runs.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert list(runs[0]) == ["data", "n", "repetition", "linkage", "method", "moves", "correlation"]
    assert len(runs) == 2 * 10 * 3 * 5 * 3
    with (tmp_path / "b" / "figure3.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(figures.CSV_COLUMNS)
    assert len(rows) == 2 * 5 * 10
    row = next(r for r in rows if (r["method"], r["linkage"], r["n"]) == ("IHC", "average", "70"))
    moves = [
        float(r["moves"])
        for r in runs
        if (r["data"], r["n"], r["linkage"], r["method"]) == ("uniform", "70", "average", "IHC")
    ]
    assert float(row["mean"]) == pytest.approx(np.mean(moves))
    assert float(row["variance"]) == pytest.approx(np.var(moves, ddof=1))
    assert float(row["standard_error"]) == pytest.approx(np.std(moves, ddof=1) / np.sqrt(3))
    with (tmp_path / "b" / "figure6.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 5 * 10
    row = next(r for r in rows if (r["method"], r["linkage"], r["n"]) == ("HAC", "ward", "10"))
    wanted = [
        float(r["correlation"])
        for r in runs
        if (r["data"], r["n"], r["linkage"], r["method"]) == ("mnist", "10", "ward", "HAC")
    ]
    assert float(row["mean"]) == pytest.approx(np.mean(wanted))
    report = (tmp_path / "b" / "report.md").read_text()
    for statement in statements.STATEMENTS:
        assert statement.claim in report
    assert "**Holds in all 4 cases.** Counted as holding where in every single run" in report  # single linkage

    result = run_command(tmp_path / "b", "--seed", "1")
    assert result.returncode == 1
    assert "made with another seed" in result.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repetitions", "0"], "repetitions"),
        (["--jobs", "0"], "jobs"),
        (["--mnist", "nowhere.npz"], "--mnist must be a file or a folder that exists"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    result = run_command(tmp_path / "out", *arguments)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.process
def test_output_that_is_a_file(tmp_path):
    (tmp_path / "out").write_text("mine")
    result = run_command(tmp_path / "out", "--repetitions", "2")
    assert result.returncode == 1
    assert "--output must be a folder" in result.stderr
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.process
def test_without_its_extra(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv[1:] = ['--output', sys.argv[1]];"
        "from paper.reproduce import main; main()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
    assert result.returncode == 1
    assert "pip install 'evertree[demo]'" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_extended_run(tmp_path, monkeypatch):
    """All questions on few points: tables, figures, and a section each."""
    pytest.importorskip("numba", reason="it compiles a kernel of the experiments, which is not in the library")
    monkeypatch.setattr(growth, "LARGE", (20, 40))
    monkeypatch.setattr(growth, "SMALL", (10, 20))
    for module in (growth, orders, over_time, random_single, metric_learning):
        monkeypatch.setattr(module, "REPETITIONS", 2)
    monkeypatch.setattr(orders, "N", 20)
    monkeypatch.setattr(insertion_orders, "N", 40)
    monkeypatch.setattr(insertion_orders, "ORDERS", 2)
    monkeypatch.setattr(random_single, "SIZES", (10, 20))
    monkeypatch.setattr(metric_learning, "N", 200)
    monkeypatch.setattr(over_time, "N", 40)
    monkeypatch.setattr(metric_learning, "LABELLED", (3, 4))
    monkeypatch.setattr(metric_learning, "STEPS", 2)
    options = reproduce.parse(["--output", str(tmp_path), "--repetitions", "2", "--extended", "--jobs", "1"])
    reproduce.run(Console(file=io.StringIO()), options)
    report = (tmp_path / "report.md").read_text()
    assert "python -m paper.reproduce --repetitions 2 --seed 0 --extended" in report
    for heading, module in QUESTIONS.items():
        assert f"### {heading}" in report
        assert module.EXPLANATION in report
        study = module.study()
        with (tmp_path / f"{study.name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == [*study.case_columns, *study.columns]
        assert len({tuple(row[c] for c in study.case_columns) for row in rows}) == len(study.cases)
    for name in ("growth", "over_time", "random_single", "metric_learning"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"({name}.png)" in report
    assert "nan" not in report


def test_the_documentation_has_the_report():
    folder = PROJECT / "docs" / "reproduction"
    report = (folder / "report.md").read_text()
    for statement in statements.STATEMENTS:
        assert statement.claim in report
    for heading in QUESTIONS:
        assert f"### {heading}" in report
    for name in [line.rpartition("(")[2].rstrip(")") for line in report.splitlines() if line.startswith("![")]:
        assert (folder / name).is_file(), name

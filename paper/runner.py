"""Running the cases of a study on all cores, with a progress bar; what is done stays done."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from rich.progress import Progress

from paper.study import Case, Records, Row, Settings, Study

Results = list[tuple[Case, list[Row]]]


def n_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(study: Study, settings: Settings, records: Records, n_jobs: int, progress: Progress) -> None:
    """Run all cases that have no record yet. Ctrl-C loses those that are being run."""
    missing = [case for case in study.cases if case not in records]
    # The first case may have to compile kernels, which takes a minute, once.
    title = "Compiling, or loading kernels" if missing else study.title
    bar = progress.add_task(title, total=len(study.cases), completed=len(study.cases) - len(missing))
    for results in _results(study, settings, missing, 1 if study.is_timed else n_jobs):
        records.add(results)
        progress.update(bar, advance=len(results), description=study.title)


def _results(study: Study, settings: Settings, cases: list[Case], n_jobs: int) -> Iterator[Results]:
    if not cases:
        return
    yield _run_some(study.run, settings, cases[:1])  # here, so that other processes find most kernels compiled
    batches = [cases[start : start + study.at_once] for start in range(1, len(cases), study.at_once)]
    batches.reverse()  # the largest come last in most studies, and should not be started last
    if n_jobs == 1:
        for batch in batches:
            yield _run_some(study.run, settings, batch)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, context, _begin_worker) as pool:
        try:
            waiting: set[Future[Results]] = {pool.submit(_run_some, study.run, settings, batch) for batch in batches}
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _run_some(run_one: Callable[[Settings, Case], list[Row]], settings: Settings, cases: list[Case]) -> Results:
    return [(case, run_one(settings, case)) for case in cases]


def _begin_worker() -> None:
    """Leave Ctrl-C, which reaches all processes of a terminal, to the first one; and end when it ends, however."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first = multiprocessing.parent_process()
    if first is not None:
        threading.Thread(target=_end_after, args=(first.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)

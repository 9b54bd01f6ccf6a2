# Walras: the commands of the house. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
NAME ?= all
SPEED ?= 20
LISTEN ?= 127.0.0.1:7070
DATA_DIR ?= .walras/demo
WALRAS := target/release/walras

.PHONY: help setup demo test fmt clippy rust-test doc guards sim web web-test python python-test bench fuzz clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: ## install what is missing, or say the one line to run
	@./tools/setup.sh

demo: setup web ## start a venue with real order flow, and print the address of its page
	$(CARGO) build --release -p walras-node
	$(WALRAS) demo --data $(DATA_DIR) --listen $(LISTEN) --speed $(SPEED)

test: setup fmt clippy doc guards web-test python-test rust-test ## everything that CI checks

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

guards: ## the map, the layers, the sizes, the words
	$(CARGO) run --quiet -p walras-xtask -- check

rust-test: ## unit, property, scenario and recovery tests, doc tests, the small simulation
	$(CARGO) test --workspace

web: web/dist/index.html ## build the page

web/dist/index.html: web/package-lock.json web/package.json web/vite.config.ts $(shell find web/src web/public web/index.html -type f 2>/dev/null)
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

web-test: web ## the page's own tests
	cd web && npm run --silent check && npm test --silent && npm run --silent e2e

PYTHON ?= python3
PYTHON_VENV := sdk/python/.venv

$(PYTHON_VENV)/installed: sdk/python/requirements-test.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

python: $(PYTHON_VENV)/installed ## build the Python package's wheel into sdk/python/dist, and test it
	rm -rf sdk/python/dist
	cd sdk/python && PATH="$$PWD/.venv/bin:$$PATH" maturin build --quiet --release --locked --out dist
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall sdk/python/dist/*.whl
	cd sdk/python && .venv/bin/mypy walras tests && .venv/bin/pytest -q

python-test: python # what CI checks of it: style as well
	cd sdk/python && $(CARGO) fmt --check && $(CARGO) clippy --quiet --release --locked -- -D warnings

bench: ## measure: make bench NAME=order-book|engine|clearing|blocks|replay|replication|simulation|all
	./bench/run.sh $(NAME)

sim: ## simulate a venue with faults: make sim SEEDS=1000
	$(CARGO) run --release -p walras-sim -- --seeds $${SEEDS:-100}

fuzz: ## fuzz every decoder and apply: make fuzz SECONDS_EACH=60
	./tools/fuzz/run.sh $${SECONDS_EACH:-60}

clean: ## remove what was built
	$(CARGO) clean
	rm -rf web/dist web/node_modules .walras sdk/python/{target,dist,.venv}

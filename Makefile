# Walras: the commands of the house. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
NAME ?= all
SPEED ?= 20
LISTEN ?= 127.0.0.1:7070
DATA_DIR ?= .walras/demo
SIEGE ?=
WALRAS := target/demo/walras

# What cargo keeps to compile faster the next time costs a first build a third more. Its own commands keep it as usual, apart from this.
export CARGO_INCREMENTAL ?= 0

# Where cargo puts the debug build.
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help setup setup-build demo test fmt clippy built-tests rust-test drawn-test golden-test doc guards sim torture siege \
	web web-test page-test typescript strategies python python-in-place python-test python-wheel-full python-clusters bot-test \
	facade-test facade-small bench break cases fuzz site fix-clients clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: ## install what the tests need, or say the one line to run
	@./tools/setup.sh test

# What the program and its page need: no browser, no Python.
setup-build:
	@./tools/setup.sh build

demo: setup-build web ## start a venue with order flow, and print the address of its page: make demo SPEED=20 (times, or max)
	$(CARGO) build --profile demo -p walras-node
	$(WALRAS) demo --data $(DATA_DIR) --listen $(LISTEN) --speed $(SPEED)

# What fails often and soon comes first. web-test builds the page, before anything that holds it is compiled.
test: setup fmt guards web-test clippy doc rust-test page-test python-test bot-test facade-small golden-test ## everything that CI checks

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

guards: ## the map, the layers, the sizes, the words, the documents
	$(XTASK) check

# The features of the whole workspace: with `--package` cargo would choose others, and compile dependencies again.
XTASK = $(CARGO) build --quiet --workspace --bin walras-xtask && $(TARGET)/debug/walras-xtask

# The test programs, once for all targets that need them or the programs that they start. Without `--tests` each example would be linked;
# a test needs one of them. Among the libraries is the Python package's.
built-tests:
	$(CARGO) build --workspace --lib --example rehearsal
	$(CARGO) test --workspace --tests --no-run

# The same drawn cases in every run, so that a failure is the change's and comes again; `make cases` draws others.
rust-test: export PROPTEST_RNG_SEED ?= 1
rust-test: built-tests ## unit, property, scenario and recovery tests, doc tests, the small simulation
	$(CARGO) test --workspace --tests
	$(CARGO) test --workspace --doc

# The hashes in which recorded runs end, once more in the build that venues run.
golden-test:
	$(CARGO) test --release -p walras-engine --test golden

web: web/dist/index.html ## build the page

# The page imports the client of sdk/typescript from its sources.
web/dist/index.html: web/package-lock.json web/package.json web/vite.config.ts web/tsconfig.json \
		$(shell find web/src web/public web/index.html sdk/typescript/src -type f 2>/dev/null)
	cd web && ../tools/quietly.sh "web: fetching the libraries of package-lock.json (npm ci)" npm ci --no-audit --no-fund --loglevel=error
	cd web && ../tools/quietly.sh "web: building the page" npm run --silent build

TYPESCRIPT_TOOLS := sdk/typescript/node_modules/.package-lock.json

$(TYPESCRIPT_TOOLS): sdk/typescript/package-lock.json sdk/typescript/package.json
	cd sdk/typescript && ../../tools/quietly.sh "typescript: fetching the tools of package-lock.json (npm ci)" \
		npm ci --no-audit --no-fund --loglevel=error

typescript: $(TYPESCRIPT_TOOLS) ## build the TypeScript client's package into sdk/typescript: walras-VERSION.tgz
	cd sdk/typescript && ../../tools/quietly.sh "typescript: building the package" npm pack --loglevel=error

web-test: web $(TYPESCRIPT_TOOLS) ## the page's own tests, and those of the TypeScript client
	cd sdk/typescript && npm run --silent check && npm test --silent
	cd web && npm run --silent check && npm test --silent && npm run --silent e2e

page-test: web $(TYPESCRIPT_TOOLS) built-tests ## the page in the program, and the TypeScript client, against venues of their own
	cd sdk/typescript && WALRAS_PROGRAM="$(abspath $(TARGET)/debug/walras)" npm run --silent test:venue
	cd web && WALRAS_PROGRAM="$(abspath $(TARGET)/debug/walras)" npm run --silent e2e:demo
	cd web && WALRAS_PROGRAM="$(abspath $(TARGET)/debug/walras)" npm run --silent e2e:cluster

PYTHON ?= python3
PYTHON_VENV := sdk/python/.venv

$(PYTHON_VENV)/installed: sdk/python/requirements-test.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	tools/quietly.sh "python: making a virtual environment" $(PYTHON) -m venv --clear $(PYTHON_VENV)
	tools/quietly.sh "python: fetching what requirements-test.txt names (pip)" \
		$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

python: $(PYTHON_VENV)/installed ## build the Python package's wheel into sdk/python/dist, and test it
	rm -rf sdk/python/dist sdk/python/walras/_native.abi3.so $(PYTHON_VENV)/lib/python3*/site-packages/walras.pth
	cd sdk/python && PATH="$$PWD/.venv/bin:$$PATH" ../../tools/quietly.sh "python: building the wheel (maturin, optimised: minutes the first time)" \
		maturin build --quiet --profile wheel --locked --out dist
	tools/quietly.sh "python: installing the wheel" \
		$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall sdk/python/dist/*.whl
	cd sdk/python && .venv/bin/mypy walras tests tools && .venv/bin/pytest -q

# The package's sources with the extension as the workspace's tests have built it: a wheel would be compiled again, with all that it needs.
python-in-place: $(PYTHON_VENV)/installed built-tests
	$(PYTHON_VENV)/bin/pip uninstall --quiet --disable-pip-version-check --yes walras
	for packages in $(PYTHON_VENV)/lib/python3*/site-packages; do echo "$$PWD/sdk/python" > "$$packages/walras.pth"; done
	cp $(TARGET)/debug/lib_native.so sdk/python/walras/_native.abi3.so

# Another program for the full wheel than one that is built for it, such as target/debug/walras, and how the extension is built.
WHEEL_PROGRAM ?=
WHEEL_PROFILE ?= --profile wheel

# Not part of the tests: the program takes many minutes to build in release.
python-wheel-full: $(PYTHON_VENV)/installed web ## the Python package's wheel with the venue's program in it, tested: sdk/python/dist-full
	$(if $(WHEEL_PROGRAM),,$(CARGO) build --release -p walras-node --features strategies)
	rm -rf sdk/python/dist-full sdk/python/walras/_native.abi3.so
	mkdir -p sdk/python/walras/_bin
	install -m 755 $(or $(WHEEL_PROGRAM),$(TARGET)/release/walras) sdk/python/walras/_bin/walras
	cd sdk/python && trap 'rm -rf walras/_bin' EXIT && PATH="$$PWD/.venv/bin:$$PATH" \
		maturin build --quiet $(WHEEL_PROFILE) --locked --out dist-full
	cd sdk/python && WALRAS_FULL_WHEEL="$$(echo "$$PWD"/dist-full/*.whl)" .venv/bin/pytest -q tests/test_full_wheel.py

CLUSTERS_VENV := sdk/python/.venv-clusters

$(CLUSTERS_VENV)/installed: sdk/python/requirements-clusters.txt
	tools/quietly.sh "python: making a virtual environment" $(PYTHON) -m venv --clear $(CLUSTERS_VENV)
	tools/quietly.sh "python: fetching what requirements-clusters.txt names (pip, 340 MB installed)" \
		$(CLUSTERS_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Not part of the tests: the packages are large.
python-clusters: python $(CLUSTERS_VENV)/installed ## spread a study over Ray and over Dask, and compare what comes of it
	$(CLUSTERS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall sdk/python/dist/*.whl
	cd sdk/python && .venv-clusters/bin/pytest -q tests/test_clusters.py

python-test: python-in-place
	cd sdk/python && .venv/bin/mypy walras tests tools && .venv/bin/pytest -q

bot-test: python-in-place web ## the bot of docs/first-bot.md and the clients of the Python package, against venues of their own
	cd sdk/python && WALRAS_PROGRAM="$(abspath $(TARGET)/debug/walras)" \
		.venv/bin/pytest -q tests/test_first_bot.py tests/test_client.py tests/test_feed.py tests/test_batch.py \
		tests/test_doc_programs.py

facade-small: web built-tests # the clients of Binance's Spot API that are small
	WALRAS_PROGRAM="$(abspath $(TARGET)/debug/walras)" PYTHON=$(PYTHON) sdk/binance-clients/run.sh small

facade-test: ## all pinned clients of Binance's Spot API against a venue, some of them large
	$(CARGO) build -p walras-node
	WALRAS_PROGRAM="$(abspath $(TARGET)/debug/walras)" PYTHON=$(PYTHON) sdk/binance-clients/run.sh all

bench: ## measure: make bench NAME=order-book|engine|clearing|batch|blocks|standing|replay|replay_files|fair-access|replication|venue|promises|access|siege|simulation|overlay|cold|all
	./bench/run.sh $(NAME)

siege: ## attack a venue and a cluster, and measure a well-behaved client meanwhile: make siege SIEGE="--only deaf"
	$(CARGO) build --release -p walras-node -p walras-siege
	$(TARGET)/release/walras-siege --program $(TARGET)/release/walras $(SIEGE)

break: ## look for batch markets without prices, then for blocks that set some aside: make break FOR=600 (seconds of each)
	$(CARGO) run --release -p walras-price-solver --example break -- $${FOR:-60} $${SEED:-0}
	$(CARGO) run --release -p walras-batch-solver --example break_blocks -- $${FOR:-60} $${SEED:-0}

# Not part of the tests: the compiler of WebAssembly alone takes minutes to build.
strategies: ## build and test strategies as WebAssembly, and the examples; needs Rust's target wasm32-unknown-unknown
	$(CARGO) clippy -p walras-strategies -p walras-node --features walras-node/strategies --all-targets -- -D warnings
	$(CARGO) test -p walras-strategies --features strategies
	$(CARGO) test -p walras-node --features strategies --test cluster strategies::
	cd sdk/strategies/sdk && $(CARGO) fmt --check
	cd sdk/strategies/rust && $(CARGO) fmt --check && $(CARGO) build --release --target wasm32-unknown-unknown
	cd sdk/strategies/assemblyscript && npm install --no-audit --no-fund --loglevel=error && npm run --silent build
	$(TARGET)/debug/walras strategy check sdk/strategies/rust/target/wasm32-unknown-unknown/release/quoter.wasm
	$(TARGET)/debug/walras strategy check sdk/strategies/assemblyscript/build/follower.wasm

fix-clients: ## QuickFIX/J and quickfix-go, unmodified, against venues, with and without TLS; needs Maven, a JDK of 17 and Go
	$(CARGO) build -p walras-node
	cd tools/fix-clients/quickfix-go && go build -o build/client .
	cd tools/fix-clients/quickfixj && mvn -q -B compile org.apache.maven.plugins:maven-dependency-plugin:2.8:build-classpath -Dmdep.outputFile=target/classpath
	python3 tools/fix-clients/run.py $(TARGET)/debug/walras quickfix-go tools/fix-clients/quickfix-go/build/client \
		spec=$$(cd tools/fix-clients/quickfix-go && go list -m -f '{{.Dir}}' github.com/quickfixgo/quickfix)/spec
	python3 tools/fix-clients/run.py $(TARGET)/debug/walras quickfixj java \
		-cp tools/fix-clients/quickfixj/target/classes:$$(cat tools/fix-clients/quickfixj/target/classpath) Main

sim: ## simulate a venue with faults: make sim SEEDS=1000
	$(CARGO) run --release -p walras-sim -- --seeds $${SEEDS:-100}

torture: ## cut a cluster's power, on disks that lose what was not synced: make torture ROUNDS=100
	WALRAS_TORTURE_ROUNDS=$${ROUNDS:-20} $(CARGO) test --workspace --test cluster power:: -- --nocapture

# Crates of core/ and protocol/ that test properties: a drawn seed costs them two minutes.
PROPERTY_CRATES = $(patsubst %/Cargo.toml,%,$(shell grep -l '^proptest' core/*/Cargo.toml protocol/*/Cargo.toml))

drawn-test: export PROPTEST_RNG_SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
drawn-test: ## the properties of core and protocol with newly drawn cases: make drawn-test SEED=1 for those of a seed
	@echo "cases of seed $(PROPTEST_RNG_SEED); the same again: make drawn-test SEED=$(PROPTEST_RNG_SEED)"
	CARGO="$(CARGO)" $(PYTHON) tools/run_tests.py $(PROPERTY_CRATES)

cases: built-tests ## search for failing cases of the property tests: make cases ROUNDS=10
	./tools/cases.sh $${ROUNDS:-10}

fuzz: ## fuzz every decoder and apply: make fuzz SECONDS_EACH=60
	./tools/fuzz/run.sh $${SECONDS_EACH:-60}

# Without its server the program builds in two minutes, and unoptimised it still builds the site in seconds.
MDBOOK_VERSION := 0.5.4
MDBOOK := $(TARGET)/tools/mdbook-$(MDBOOK_VERSION)/bin/mdbook

$(MDBOOK):
	tools/quietly.sh "site: building mdbook $(MDBOOK_VERSION), once" $(CARGO) install mdbook --version $(MDBOOK_VERSION) --locked --debug \
		--no-default-features --features search --root $(TARGET)/tools/mdbook-$(MDBOOK_VERSION)

site: $(MDBOOK) ## build the documents as a site: target/site/index.html
	$(XTASK) site
	$(MDBOOK) build

clean: ## remove what was built
	$(CARGO) clean
	rm -rf web/dist web/node_modules sdk/typescript/{dist,node_modules,LICENSE-*,*.tgz} .walras
	rm -rf sdk/python/{dist,dist-full,walras/_bin,walras/_native.abi3.so,.venv,.venv-clusters}

# What a developer and CI do. Each recipe works on a fresh Debian or Ubuntu with Rust (rustup) and make.

CARGO ?= cargo
# Debian's Python: the packages of the independent client are installed for it.
SMP_TEST_PYTHON ?= /usr/bin/python3
export SMP_TEST_PYTHON

.PHONY: help run build test check fmt lint doc deny bench fuzz corpus

help: ## Show the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: build ## Build the server, initialise it in ./data if it is not, and run it
	scripts/run

build: ## Build the server (release)
	scripts/packages build
	$(CARGO) build --locked --release --bin smp-server

test: ## Install what the tests need and run them all
	scripts/packages test
	$(CARGO) test --locked

check: ## Formatting, lints, documentation, licences and sources of dependencies
	scripts/packages build
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --document-private-items
	scripts/deny

fmt: ## Format the code
	$(CARGO) fmt
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml

deny: ## Licences, sources, duplicates and advisories of dependencies
	scripts/deny

bench: ## Run the benches
	scripts/packages build
	$(CARGO) bench --locked

fuzz: ## Run each fuzz target on its corpus and a bounded number of inputs (RUNS=20000)
	scripts/packages build
	scripts/fuzz

corpus: ## Make the corpus of the fuzz targets from the test vectors
	$(SMP_TEST_PYTHON) scripts/fuzz-corpus

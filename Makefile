# Quenda: `make serve` starts a server, `make test` passes every test. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Outside the checkout, so that a clean one reuses what is built (RocksDB alone takes minutes).
export CARGO_TARGET_DIR ?= $(HOME)/.cache/quenda-target
QUENDA := $(CARGO_TARGET_DIR)/release/quenda
export QUENDA_BIN ?= $(QUENDA)

DATA_DIR ?= ./quenda-data
PORT ?= 2181

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

.PHONY: serve
serve: build ## Build and start a server on port 2181 with its data in ./quenda-data
	exec $(QUENDA) serve --client-port $(PORT) --data-dir $(DATA_DIR)

.PHONY: build
build: build-deps ## Build the quenda program
	cargo build --release --locked -p quenda-cli

.PHONY: build-deps
build-deps: ## Install what the build needs and the machine lacks (Debian)
	@integration/build-deps

.PHONY: test
test: build-deps check unit instructions build ## Every test; the long suites in bounded form
	integration/install
	$(MAKE) --no-print-directory fuzz-bounded crash-bounded four-letter operating operators zkcli field-reports differential docker-test kazoo kazoo-ensemble \
		sim-bounded failover-bounded rolling-bounded chaos-bounded compat-bounded

.PHONY: check
check: build-deps ## Format, lints, generated code, crate levels
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings
	cargo run --release --locked -q -p quenda-xtask -- check
	cargo metadata --locked --format-version 1 --manifest-path integration/fuzz/Cargo.toml >/dev/null
	integration/compat/table --check

.PHONY: unit
unit: build-deps ## Tests of the crates
	cargo test --release --locked --workspace

.PHONY: instructions
instructions: build-deps ## Instructions of fixed work, compared with what is recorded
	integration/instructions/run

.PHONY: instructions-record
instructions-record: build-deps ## Record them anew
	integration/instructions/run --record

.PHONY: kazoo
kazoo: ## kazoo's own suite against one member
	integration/kazoo/run

.PHONY: kazoo-ensemble
kazoo-ensemble: ## kazoo's own suite against three members, and parts of it with an observer
	integration/kazoo/run --members 3
	integration/kazoo/run --members 3 --observer 3 -k 'TestReconfig or TestClient or TestReadOnlyMode or KazooLockTests'

# Each runs one suite of real clients or of an application in full, and keeps its counts for docs/compat.md.
COMPAT := tls sasl go python-clients c-client node rust-clients curator zookeeper-tests patroni kafka solr hbase dubbo \
	spring-cloud clickhouse

.PHONY: compat
compat: build ## Real clients and applications against one member and three, and the table in docs/compat.md (hours)
	integration/install
	integration/compat/run

.PHONY: compat-bounded
compat-bounded:
	integration/compat/run --bounded

.PHONY: $(COMPAT)
$(COMPAT): build
	integration/install
	integration/compat/run $(subst -,_,$@)

.PHONY: compat-list
compat-list: ## The suites of clients and applications; `make NAME`, with - for _, runs one and writes its counts into docs/compat.md
	@integration/compat/run --list

.PHONY: zkcli
zkcli: ## zkCli and cli_mt sessions
	integration/zkcli/run

.PHONY: field-reports
field-reports: ## One test for each public bug report
	integration/field_reports/run

.PHONY: four-letter
four-letter: ## Four-letter words over the wire
	integration/four_letter/run

.PHONY: operating
operating: ## status, recover and membership as an operator does it, with real members
	integration/operating/run

.PHONY: operators
operators: ## Configuration, metrics, HTTP, load, shell, audit log, packages as an operator uses them
	integration/operators/run

.PHONY: differential
differential: ## Random requests to a genuine ZooKeeper and to Quenda, every reply compared
	integration/differential/run --seeds 200 --steps 150

.PHONY: crash-bounded
crash-bounded:
	integration/crash/run --kills 25

.PHONY: crash
crash: build ## The kill -9 loop, at least 100 kills
	integration/crash/run --kills 200

.PHONY: sim-bounded
sim-bounded: build-deps
	cargo run --release --locked -q -p quenda-sim -- --seeds 0..2000 --jobs 2

.PHONY: sim
sim: build-deps ## Simulated clusters from new seeds for MINUTES (30), then mutants that the checkers have to find
	cargo run --release --locked -q -p quenda-sim -- --seeds $$(date +%s)000..0 --minutes $(or $(MINUTES),30) --jobs 2
	integration/sim/mutants --seeds 800

.PHONY: chaos-bounded
chaos-bounded:
	integration/chaos/run --bounded

.PHONY: chaos
chaos: build ## Real members cut apart, killed, stopped, on slow and full disks while real clients use them (40 minutes, root)
	integration/chaos/run

.PHONY: failover-bounded
failover-bounded:
	integration/failover/run --kills 5
	integration/failover/sessions --sessions 2000 --timeout 6 --kills 3

.PHONY: failover
failover: build ## From the kill of a leader to the next acknowledged write, 25 times; kills and pauses under 15 000 sessions
	integration/failover/run --kills 25
	integration/failover/sessions
	integration/failover/sessions --pause --kills 4

.PHONY: rolling-bounded
rolling-bounded:
	integration/rolling/run --rounds 1

.PHONY: rolling
rolling: build ## Rolling restarts and changes of three members under load
	integration/rolling/run

.PHONY: fuzz-bounded
fuzz-bounded:
	integration/fuzz/run 20

.PHONY: fuzz
fuzz: ## Fuzz each decoder for ten minutes
	integration/fuzz/run 600

.PHONY: compare
compare: build ## Quenda, a genuine ZooKeeper and etcd side by side, into docs/performance.md (45 minutes); QUICK=1 for a look
	integration/install
	integration/compare/run $(if $(QUICK),--quick,--write)

.PHONY: compare-ensemble
compare-ensemble: build ## The same with three members each
	integration/install
	integration/compare/run --members 3 $(if $(QUICK),--quick,--write)

.PHONY: floor
floor: build ## How far Quenda is from a bare echo server and a bare fdatasync loop
	cargo build --release --locked -p quenda-cli --example echo
	integration/compare/run-floor --write

.PHONY: startup
startup: build ## Start, stop and crash recovery with 1 M and 10 M znodes
	integration/compare/run-startup --write

.PHONY: pause
pause: build ## Latency while checkpoints, snapshots and images are made
	integration/compare/run-pause --write

.PHONY: growth
growth: build ## What an operation costs against the number of znodes, children, watches, sessions, members
	integration/compare/run-growth --write

.PHONY: memory
memory: build ## What the memory of a member goes to: a znode, a watch, a session, a connection; what is given back
	integration/compare/run-memory

.PHONY: compare-snapshot
compare-snapshot: build ## How long an empty member takes a million znodes, and what it costs the writers meanwhile
	integration/compare/run-snapshot

.PHONY: deb
deb: build ## The Debian package, with unit, man pages and completions
	packaging/build-deb

.PHONY: docker-image
docker-image: build ## The container image `quenda`; see docker/README.md
	docker/build

.PHONY: docker-test
docker-test: build ## The image and its three members, on a Docker engine of its own where none runs
	integration/docker/run

# Everything that is done with this repository. It needs Go, make, git, curl, python3 (the
# tests run the examples) and a C compiler (for the race detector); the rest is fetched or built when it is first needed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
IMAGE   ?= leasecron:$(VERSION)
# Certificates of public authorities, for the image that is assembled without an engine.
CA_BUNDLE ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))

version_package := github.com/leasecron/leasecron/internal/version
ldflags := -s -w -X $(version_package).version=$(VERSION) -X $(version_package).commit=$(COMMIT)
go_build := CGO_ENABLED=0 go build -trimpath -ldflags '$(ldflags)'

# One control plane serves all packages; each would otherwise start its own.
with_controlplane := bin/controlplane run --
test := bin/testsummary go test -json -p 4

##@ Use

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Build and run the sidecar with an example app; Ctrl-C ends both
	@scripts/run.sh

.PHONY: build
build: ## Build bin/sidecar, static and stripped
	@echo "building bin/sidecar $(VERSION) (the first build fetches the modules)"
	@$(go_build) -o bin/sidecar ./cmd/sidecar

.PHONY: example
example: ## Build bin/example-app, which receives the callbacks of 'make run'
	@$(go_build) -o bin/example-app ./examples/app

.PHONY: image
image: ## Build the container image with docker or podman (IMAGE=name:tag)
	@scripts/image.sh "$(IMAGE)" "$(VERSION)" "$(COMMIT)"

.PHONY: image-tar
image-tar: image-files ## Write bin/leasecron.tar, which docker load and podman load take; needs no engine
	@go run ./test/image/cmd/imagetar -out bin/leasecron.tar -context bin/image -tag "$(IMAGE)" -version "$(VERSION)" -commit "$(COMMIT)"
	@echo "wrote bin/leasecron.tar: $(IMAGE)"

# What the Dockerfile's prebuilt stage copies.
.PHONY: image-files
image-files:
	@$(go_build) -o bin/image/bin/sidecar ./cmd/sidecar
	@test -n "$(CA_BUNDLE)" || { echo "no certificates of public authorities are where they usually are: say CA_BUNDLE=FILE" >&2; exit 1; }
	@cp "$(CA_BUNDLE)" bin/image/bin/ca-certificates.crt
	@chmod 644 bin/image/bin/ca-certificates.crt

##@ Check

.PHONY: test
test: test-tools ## Run every test against a real etcd and kube-apiserver
	@echo "testing; the control plane starts once for all packages"
	@$(with_controlplane) $(test) -timeout 15m ./...

.PHONY: test-race
test-race: test-tools ## The same with the race detector
	@echo "testing with the race detector"
	@CGO_ENABLED=1 $(with_controlplane) $(test) -race -timeout 30m ./...

.PHONY: test-long
test-long: test-tools ## The same and the tests that take long (build tag long)
	@echo "testing, long tests too"
	@$(with_controlplane) $(test) -tags long -timeout 90m ./...

.PHONY: test-tools
test-tools: ## Build what the tests need: bin/controlplane, etcd, kube-apiserver, kubectl, promtool
	@echo "building the test tools; etcd, kube-apiserver, kubectl and promtool if they are not in the cache yet"
	@go build -o bin/testsummary ./test/testsummary
	@go build -o bin/controlplane ./test/controlplane/cmd/controlplane
	@bin/controlplane build etcd kube-apiserver kubectl >/dev/null
	@scripts/tool.sh promtool >/dev/null

.PHONY: chaos
chaos: test-tools ## Break real sidecars for TIME (10m); SEED=n replays, SIDECARS=n (3)
	@echo "building the sidecar and the chaos test"
	@go test -c -o bin/chaos ./test/chaos
	@cd test/chaos && ../../bin/chaos -test.run '^TestChaos$$' -test.timeout 0 \
		-chaos.time $${TIME:-10m} -chaos.seed $${SEED:-0} -chaos.sidecars $${SIDECARS:-3}

.PHONY: sim
sim: ## Simulate SEEDS (250) clusters full of faults, in simulated time
	@go test ./test/sim -run 'TestSeeds$$' -v -count 1 -timeout 0 -sim.seeds $${SEEDS:-250}

.PHONY: sim-planted
sim-planted: ## Plant mistakes and check that the simulation finds each within SEEDS (5000)
	@go run ./test/sim/plant -seeds $${SEEDS:-5000}

.PHONY: fuzz
fuzz: ## Fuzz each fuzz test for FUZZTIME (30s)
	@scripts/fuzz.sh $${FUZZTIME:-30s}

.PHONY: bench
bench: ## Run the benchmarks
	@go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-lateness
bench-lateness: test-tools ## Measure lateness against a memory ledger for SAMPLES (600) seconds, and a crowd
	@$(with_controlplane) go test ./test/bench -count 1 -v -timeout 0 -bench.samples $${SAMPLES:-600}

.PHONY: bench-election
bench-election: test-tools ## Measure hand-over, crash, requests and cut-off beside client-go's elector, against their limits
	@echo "measuring for some five minutes, best on a machine that does nothing else"
	@$(with_controlplane) go test ./test/electionbench -count 1 -v -timeout 15m -election.full

.PHONY: bench-invoker
bench-invoker: ## Measure callbacks per second against a bare net/http client, TRIALS (41) pairs of half a second
	@go test ./test/throughput -count 1 -v -timeout 0 -throughput.trials $${TRIALS:-41} -throughput.time 500ms

.PHONY: bench-footprint
bench-footprint: test-tools build ## Measure size, memory, CPU and start of the sidecar against their limits
	@echo "measuring for a minute and a half"
	@$(with_controlplane) go test -tags footprint -count 1 -v -timeout 10m ./test/footprint

.PHONY: image-rootfs
image-rootfs: image-files ## Assemble the image's file system without an engine, run it read-only, measure it
	@go test -tags image -count 1 -v ./test/image

.PHONY: lint
lint: ## Lint (golangci-lint is built the first time)
	@linter=$$(scripts/tool.sh golangci-lint) && "$$linter" run ./...

.PHONY: ci
ci: ## What CI does
	@.ci/run

##@ Change

.PHONY: fmt
fmt: ## Format the code
	@linter=$$(scripts/tool.sh golangci-lint) && "$$linter" fmt ./...

.PHONY: generate
generate: ## Write the generated files anew
	@go generate ./...

.PHONY: clean
clean: ## Remove what was built here; caches stay
	@rm -rf bin coverage.out

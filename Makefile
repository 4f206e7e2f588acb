# Every target does its own set-up and says what it is doing. What is slow is done once and kept.
SHELL := bash
.DEFAULT_GOAL := help
HISTORIES ?= 300
FROM ?= 1
LATER ?= 45
.PHONY: help build test simulate sim soak planted test-long soak-placement test-page faults fuzz lint format manifests image single-file bench bench-compare conformance tools demo demo-down burst-demo

NODE_OK := $(shell node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 18) ? 0 : 1)' 2>/dev/null && echo yes)

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# npm writes this file at the end of every install.
node_modules/.package-lock.json: package-lock.json
	@if [ "$(NODE_OK)" != yes ]; then echo 'Node.js 20.18 or newer is needed'; exit 1; fi
	@echo '== installing npm packages'
	@npm ci --no-progress
	@touch $@

build: node_modules/.package-lock.json ## compile to dist/
	@echo '== compiling'
	@npm run --silent build

test: build ## unit tests, histories in the simulator, then tests on real clusters
	@node dist/hack/test.js unit
	@$(MAKE) --no-print-directory simulate
	@node dist/hack/test.js cluster

dist/test/sim/main.js: build
	@node_modules/.bin/tsc -p tsconfig.sim.json --noCheck

simulate: dist/test/sim/main.js ## the whole program against a world that can do anything (HISTORIES=300 FROM=1; LATER=45: those of later themes among so many others)
	@node dist/test/sim/main.js same 3 $(FROM)
	@node dist/test/sim/main.js run $(HISTORIES) $(FROM)
	@node dist/test/sim/main.js run $(LATER) 1000001 later

sim: dist/test/sim/main.js ## one history, readable, then the shortest that breaks the same rule (SEED=n, STEPS=1,2: only these, CHANGES=1)
	@node dist/test/sim/main.js replay $(SEED) "$(STEPS)" $(if $(CHANGES),changes)

soak: dist/test/sim/main.js ## new histories for so many seconds, and the seeds that break a rule (FOR=3600)
	@node dist/test/sim/main.js soak $(or $(FOR),3600)

planted: dist/test/sim/main.js ## mistakes put into a copy of the program: the simulator has to find each
	@node dist/test/sim/planted.js $(ONLY)

test-long: build ## what shows only after minutes, on real clusters (45 minutes)
	@node dist/hack/test.js long

test-page: build ## the page of `kubectl spillway ui` in headless Chromium (1 minute; PICTURES=1: anew for docs/)
	@$(if $(PICTURES),PAGE_PICTURES=1) node dist/hack/test.js page

soak-placement: build ## 300 workloads on real clusters in which everything changes (MINUTES=10; SEED=s to repeat)
	@$(if $(MINUTES),SOAK_MINUTES=$(MINUTES)) $(if $(SEED),SOAK_SEED=$(SEED)) node dist/hack/test.js soak

faults: build ## break things on real clusters; prints the table and writes docs/faults.md (80 minutes)
	@node dist/hack/test.js faults

fuzz: build ## arbitrary input to all that is read from others (3 minutes; RUNS=n inputs, SEED=s to repeat)
	@$(if $(RUNS),FUZZ_RUNS=$(RUNS)) $(if $(SEED),FUZZ_SEED=$(SEED)) node dist/hack/test.js fuzz

lint: build ## types, lint, format, unused code, import rules, generated files
	@echo '== types';          node_modules/.bin/tsc -p tsconfig.json
	@echo '== oxlint';         node_modules/.bin/oxlint --type-aware --deny-warnings
	@echo '== format';         node_modules/.bin/oxfmt --check
	@echo '== unused code';    node_modules/.bin/knip
	@echo '== what only tests use'; node_modules/.bin/knip --production -c hack/lint/knip-src.json --include files,exports,types
	@echo '== import rules';   node dist/hack/lint/check-imports.js
	@echo '== generated files'; node dist/hack/generate-manifests.js --check
	@if command -v shellcheck >/dev/null; then echo '== shell'; shellcheck hack/kind.sh .ci/run; \
	else echo '== shell: not checked, shellcheck is not installed'; fi
	@echo '== lint: all well'

format: node_modules/.package-lock.json ## format the code
	@node_modules/.bin/oxfmt

manifests: build ## write what follows from the kinds' schemas
	@node dist/hack/generate-manifests.js

tools: build ## get the Kubernetes binaries (download or go build; VERSIONS="1.33 1.37": control planes of those)
	@node dist/hack/main.js tools $(if $(VERSIONS),--kubernetes $(VERSIONS))

image: build ## the image of the manager without Docker, and an SBOM: dist/image (NAME=example.com/spillway:0.1.0)
	@node dist/hack/main.js image $(if $(NAME),--name $(NAME))

single-file: build ## `kubectl spillway` as one file that needs Node.js only: dist/single/kubectl-spillway
	@node dist/hack/main.js single-file

bench: build tools ## measured comparisons (ONLY=burst,streams: some); writes bench/RESULTS.md (30 minutes)
	@node dist/bench/main.js $(if $(ONLY),--only $(ONLY))

bench-compare: build ## two runs of the bench: fails where a figure became worse by more than 5 % (BASE=, NEW=: files or revisions)
	@node dist/bench/compare.js $(or $(BASE),HEAD) $(NEW)

conformance: build tools ## suites of others through a virtual node; writes docs/conformance.md
	@node dist/hack/conformance/main.js

demo: build ## a host with one node and two members on this machine, and a Deployment that is larger than its host
	@node dist/hack/main.js demo

demo-down: build ## end the demo and remove all of it (PURGE=1: binaries and images from the cache, too)
	@node dist/hack/main.js demo-down $(if $(PURGE),--purge)

burst-demo: build ## watch an autoscaler burst out of its host into two members, one of which is lost twice; an error if it is not as it should be (4 minutes)
	@node dist/hack/main.js burst

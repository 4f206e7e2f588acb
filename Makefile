# Every target does its own set-up and says what it is doing. What is slow is done once and kept.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help build test test-long faults lint format manifests bench conformance tools demo demo-down burst-demo

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
	@node_modules/.bin/tsc -p tsconfig.build.json

test: build ## unit tests, then tests on real clusters
	@node dist/hack/test.js unit cluster

test-long: build ## what shows only after minutes, on real clusters (20 minutes)
	@node dist/hack/test.js long

faults: build ## break things on real clusters; prints the table and writes docs/faults.md (40 minutes)
	@node dist/hack/test.js faults

lint: build ## types, lint, format, unused code, import rules, generated files
	@echo '== types';          node_modules/.bin/tsc -p tsconfig.json
	@echo '== oxlint';         node_modules/.bin/oxlint --type-aware --deny-warnings
	@echo '== format';         node_modules/.bin/oxfmt --check
	@echo '== unused code';    node_modules/.bin/knip
	@echo '== import rules';   node dist/hack/lint/check-imports.js
	@echo '== generated files'; node dist/hack/generate-manifests.js --check
	@if command -v shellcheck >/dev/null; then echo '== shell'; shellcheck hack/kind.sh .ci/run; \
	else echo '== shell: not checked, shellcheck is not installed'; fi
	@echo '== lint: all well'

format: node_modules/.package-lock.json ## format the code
	@node_modules/.bin/oxfmt

manifests: build ## write what follows from the kinds' schemas
	@node dist/hack/generate-manifests.js

tools: build ## get the Kubernetes binaries (download or go build)
	@node dist/hack/main.js tools

bench: build tools ## measured comparisons (ONLY=burst,streams: some); writes bench/RESULTS.md (30 minutes)
	@node dist/bench/main.js $(if $(ONLY),--only $(ONLY))

conformance: build tools ## suites of others through a virtual node; writes docs/conformance.md
	@node dist/hack/conformance/main.js

demo: build ## a host and two members on this machine, with pods on virtual nodes
	@node dist/hack/main.js demo

demo-down: build ## end the demo and remove all of it
	@node dist/hack/main.js demo-down

burst-demo: build ## watch an autoscaler burst out of its host into two members, and come back (2 minutes)
	@node dist/hack/main.js burst

# Every target does its own set-up: what is missing is installed with apt (see scripts/setup.sh), then
# configured, built and run. `make help` lists them.
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
VERSION := $(shell cat VERSION)

CTEST := ctest --output-on-failure -j $(JOBS)
# Ninja configures again by itself when a CMakeLists.txt or the set of files changes.
configure = mkdir -p build; test -f build/$(1)/build.ninja || cmake --preset $(1) >build/configure.log 2>&1 \
            || { cat build/configure.log; exit 1; }; rm -f build/configure.log
# One line a module; VERBOSE=1 shows every command.
compile = VERBOSE=$(VERBOSE) scripts/compile.sh build/$(1) -j $(JOBS)

.PHONY: help run build test test-anywhere dev tsan fuzz mutants damage-snapshots soak bench accuracy gate check lint lint-all format format-check install deb \
        portable wheels container clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 26

gate: ## check what must pass before a change is merged: the tests and the format (what .ci/run runs)
	@scripts/steps.sh gate

check: ## check the rest: packages, clang-tidy, the tests under sanitizers, fuzzing (an hour on two cores)
	@scripts/steps.sh check

run: build ## watch this machine's GPUs; without a GPU, simulate a training job that leaks
	@trap : INT; build/release/vramtrack watch --or-simulate; status=$$?; scripts/next_steps.sh; [ $$status = 130 ] || exit $$status

build: ## build the release binary, build/release/vramtrack
	@scripts/setup.sh build web
	@$(call configure,release)
	@$(call compile,release) --target product
	@$(if $(filter-out build,$(MAKECMDGOALS)),,scripts/next_steps.sh)

test: ## build and run every test
	@scripts/setup.sh build test web browser python
	@$(call configure,test)
	@$(call compile,test)
	@$(CTEST) --test-dir build/test

ANYWHERE ?=
test-anywhere: ## run the tests at midnight, at clock changes, in another zone and locale, and under load; ANYWHERE: its options
	@scripts/setup.sh build test web browser python anywhere
	@$(call configure,test)
	@$(call compile,test)
	@scripts/test_anywhere.sh build/test $(ANYWHERE)

dev: ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer (clang; builds the fuzz targets too)
	@scripts/setup.sh build test web browser fuzz
	@$(call configure,dev)
	@$(call compile,dev)
	@$(CTEST) --test-dir build/dev

# ThreadSanitizer cannot start where the kernel lays out memory too randomly; without randomness it always does.
same_layout = $(shell setarch -R true 2>/dev/null && echo setarch -R)
# The modules that have threads; the rest of the code runs in one. agent_load measures, which says nothing here.
tsan: ## run the tests of the server, the agent, act and live under ThreadSanitizer
	@scripts/setup.sh build test web
	@$(call configure,tsan)
	@$(call compile,tsan) --target threaded_tests
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp $(same_layout) $(CTEST) --test-dir build/tsan -L '^(act|agent|live)$$' -E '^agent_load$$'

FUZZ_SECONDS ?= 20
fuzz: ## run each fuzz target on its committed corpus, then on FUZZ_SECONDS (20) of new input
	@scripts/setup.sh build test fuzz
	@$(call configure,dev)
	@$(call compile,dev) --target fuzz_targets
	@scripts/fuzz.sh build/dev $(FUZZ_SECONDS)

MUTANTS_ARGS ?=
mutants: ## check that a test kills each one-line mutation of tests/mutations.txt
	@scripts/setup.sh build test
	@python3 scripts/mutants.py --jobs $(JOBS) $(MUTANTS_ARGS)

MUTATIONS ?= 1000000
damage-snapshots: ## run the snapshot reader on MUTATIONS (1000000) damaged files: it must give an error or a snapshot
	@scripts/setup.sh build test
	@$(call configure,test)
	@$(call compile,test) --target trace_test
	@MALLOC_TOP_PAD_=67108864 MALLOC_MMAP_THRESHOLD_=33554432 VRAMTRACK_MUTATIONS=$(MUTATIONS) build/test/trace_test --gtest_brief=1 --gtest_filter='*MutatedFilesNeverBreakIt'

SOAK_SECONDS ?= 3600
SOAK_DAYS ?= 7
soak: build ## run an agent through SOAK_DAYS (7) simulated days and a watch for SOAK_SECONDS (3600): memory and files must stay bounded
	@scripts/setup.sh build test bench
	@$(call configure,bench)
	@$(call compile,bench)
	@bench/agent.py soak $(SOAK_DAYS)
	@bench/agent.py soak $(SOAK_DAYS) --churn
	@bench/watch.sh --soak $(SOAK_SECONDS)

bench: ## measure the figures of docs/BENCHMARKS.md
	@scripts/setup.sh build test bench python
	@$(call configure,bench)
	@$(call compile,bench)
	@bench/run.sh

ACCURACY_ARGS ?= --seed 3 --per-family 40 --jobs $(JOBS)
TRACES ?= ../shared/traces/series
accuracy: ## measure how often the verdict is right, beside other rules: the tables of docs/ACCURACY.md (test split)
	@scripts/setup.sh build test bench
	@$(call configure,bench)
	@$(call compile,bench) --target accuracy
	@build/bench/accuracy --split test $(ACCURACY_ARGS) --recordings tests/recordings \
	  $(if $(wildcard $(TRACES)),--traces $(TRACES))

lint: ## run clang-format on every file, and clang-tidy on those that changed since origin/main (or in the last 20 commits)
	@scripts/setup.sh build test lint
	@$(call configure,test)
	@scripts/lint.sh build/test --changed

lint-all: ## run clang-format and clang-tidy on every file
	@scripts/setup.sh build test lint
	@$(call configure,test)
	@scripts/lint.sh build/test

format: ## rewrite the sources with clang-format
	@scripts/setup.sh lint
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format -i

format-check: ## check that every source is as clang-format writes it
	@scripts/setup.sh format
	@scripts/lint.sh --format

install: build ## install into $(DESTDIR)$(PREFIX)
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)' --strip

deb: ## build dist/vramtrack_VERSION_ARCH.deb from the binary that `make test` tests
	@scripts/setup.sh build test web package
	@$(call configure,test)
	@$(call compile,test) --target product
	@cd build/test && cpack -G DEB >cpack.log || { cat cpack.log; exit 1; }
	@mkdir -p dist && cp build/test/vramtrack_*.deb dist/ && ls -l dist/*.deb

portable: ## build dist/vramtrack-VERSION-linux-ARCH.tar.gz: one binary that needs only glibc
	@scripts/setup.sh build package
	@$(call configure,portable)
	@$(call compile,portable)
	@scripts/portable.sh build/portable

wheels: ## build dist/*.whl of the Python package for every Python found, and test each
	@scripts/setup.sh wheel wheels
	@JOBS=$(JOBS) scripts/wheels.sh

container: ## build an image with the binary, with podman or docker
	@$$(command -v podman || command -v docker) build -t vramtrack:$(VERSION) -f Containerfile .

clean: ## remove build/ and dist/
	@rm -rf build dist page/build page/dist

# Every target does its own set-up: what is missing is installed with apt (see scripts/setup.sh), then
# configured, built and run. `make help` lists them.
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
VERSION := $(shell cat VERSION)

# RapidCheck and Hypothesis draw the same numbers in each run; SEED=N draws others. `make check` takes a new one and prints it.
SEED ?= 1
# The long tests wait more than they compute: a quarter of the cores was in use with one more than there are.
TEST_JOBS ?= $(shell echo $$((2 * $(JOBS) + 1)))
CTEST := RC_PARAMS=seed=$(SEED) VRAMTRACK_TEST_SEED=$(SEED) scripts/run_tests.sh
# Ninja configures again by itself when a CMakeLists.txt or the set of files changes.
# `tests` adds them to a folder that was configured without: nothing is compiled again for that.
configure = mkdir -p build; { test -f build/$(1)/build.ninja $(if $(2),&& grep -q '^VRAMTRACK_TESTS:BOOL=ON' build/$(1)/CMakeCache.txt); } \
            || cmake --preset $(1) $(if $(2),-DVRAMTRACK_TESTS=ON) >build/configure.log 2>&1 \
            || { cat build/configure.log; exit 1; }; rm -f build/configure.log
# One line per module; VERBOSE=1 shows every command.
compile = VERBOSE=$(VERBOSE) scripts/compile.sh build/$(1) -j $(JOBS)

.PHONY: help run main-job build quick rewrite compiled-tests test test-anywhere test-torch test-torch-all test-torch-snapshots test-apis test-trainers test-python314 test-kubernetes dev sanitized tsan faults fuzz fuzz-long mutants damage-snapshots syntaxes soak soak-clock bench bench-fleet check-fleet check-kills containment accuracy probe-accuracy attach-accuracy keepers \
         gate-families gate check lint lint-all format format-check \
        install deb try-deb portable try-portable wheels try-wheel aarch64 manual chart dist container clean

help: ## print this list
	@list() { sed -n "s/^\([a-z0-9-]*\):.*$$1 /  make \1\t/p" Makefile | expand -t 29; }; \
	  list '##'; echo 'For those who change it (CONTRIBUTING.md):'; list '##+'

gate: ##+ check what must pass before a change is merged: the tests, the unit tests under sanitizers, the format (what .ci/run runs)
	@scripts/steps.sh gate

check: ##+ check the rest: packages, clang-tidy, the tests under sanitizers, fuzzing (an hour on two cores)
	@scripts/steps.sh check

run: main-job ## watch this machine's GPUs; without a GPU, simulate a training job that leaks
	@trap : INT; build/release/vramtrack watch --or-simulate; status=$$?; scripts/next_steps.sh; [ $$status = 130 ] || exit $$status

# The program with what a first look needs, of two thirds of the files; where the whole one was built, that is brought up to date.
main-job:
	@scripts/setup.sh build
	@$(call configure,release)
	@if [ -e build/release/vramtrack ] && [ ! -L build/release/vramtrack ]; then $(call compile,release) --target product; \
	 else $(call compile,release) --target main_job && ln -sf main_job/vramtrack build/release/vramtrack; fi

build: ## build the release binary, build/release/vramtrack
	@scripts/setup.sh build web
	@$(call configure,release)
	@! command -v node >/dev/null || ! grep -qs '^VRAMTRACK_NODE:INTERNAL=$$' build/release/CMakeCache.txt || cmake build/release >/dev/null
	@$(call compile,release) --target product
	@$(if $(filter-out build,$(MAKECMDGOALS)),,scripts/next_steps.sh)

compiled-tests:
	@scripts/setup.sh build test web browser python devices
	@$(call configure,release,tests)
	@$(call compile,release)

test: compiled-tests ##+ build and run every test
	@$(CTEST) build/release -j $(TEST_JOBS)

quick: ##+ build and run the unit tests of what differs from the main branch, and of what depends on it directly
	@scripts/setup.sh build test web python
	@$(call configure,release,tests)
	@scripts/quick.py build/release --jobs $(JOBS)

rewrite: ##+ rewrite what follows from the code: help and goldens, completions, man page, tables of documents; then read the difference
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target vramtrack core_test detect_test cli_test top_test period_test explain_test trace_test engine_test
	@scripts/rewrite.sh build/release

ANYWHERE ?=
test-anywhere: ##+ run the tests at midnight, at clock changes, in another zone and locale, and under load; ANYWHERE: its options
	@scripts/setup.sh build test web browser python anywhere
	@$(call configure,release,tests)
	@$(call compile,release)
	@scripts/test_anywhere.sh build/release $(ANYWHERE)

# Real PyTorch on a fake CUDA driver (tests/torch). If the wheel is not available, lane.py prints the reason and exits with 77.
TORCH ?= 2.15.0
TORCH_ALL ?= 2.1.2 2.6.0 2.15.0
lane = tests/torch/lane.py $(1) || test $$? = 77
define build_lane
	@scripts/setup.sh build test web python
	@$(call configure,release,tests)
	@$(call compile,release) --target torch_lane
endef
test-torch: ##+ run the tests that need real PyTorch, without a GPU: installs TORCH (2.15.0) into build/torch (1.4 GB)
	$(build_lane)
	@$(call lane,test $(TORCH))

test-torch-all: ##+ the same with the oldest version, one between and the newest
	$(build_lane)
	@$(call lane,test $(TORCH_ALL))

TORCH_SNAPSHOTS ?=
test-torch-snapshots: ##+ make 326 snapshots with five versions of PyTorch, and compare what vramtrack says with torch's own counters
	$(build_lane)
	@$(call lane,snapshots $(TORCH_SNAPSHOTS))

test-apis: ##+ run pyopencl and wgpu under the probe, on devices of the processor: installs them into build/apis (120 MB)
	@scripts/setup.sh build test web python devices
	@$(call configure,release,tests)
	@$(call compile,release) --target probe_library
	@tests/probe/apis/third_party.py --build build/release || test $$? = 77

test-trainers: ##+ run the hooks for Lightning, TRL, Ray Train, verl, vLLM and SGLang in the real ones, without a GPU: installs them into build/trainers (2 GB)
	$(build_lane)
	@tests/trainers/trainers.py || test $$? = 77

test-python314: ##+ run what depends on the Python that runs with CPython 3.14, too: Debian's, of unstable, brought into build/python3.14 (33 MB)
	@scripts/setup.sh build test python314
	@$(call configure,release,tests)
	@$(call compile,release)
	@scripts/python314.sh || test $$? = 77
	@cd build/release && ctest --output-on-failure -R '^(probe.python_frames|probe_kept|cli_attach|telemetry_live)$$'

KUBERNETES ?=
KUBERNETES_ARGS ?=
test-kubernetes: ##+ run the actions for Kubernetes and the Helm chart on a real kube-apiserver: Debian's 1.20, built once into build/kubernetes (0.8 GB), or release KUBERNETES
	@scripts/setup.sh build test kubernetes
	@$(call configure,release,tests)
	@$(call compile,release) --target act_once
	@scripts/kubernetes/build.sh
	@$(if $(KUBERNETES),scripts/kubernetes/build_release.sh $(KUBERNETES))
	@tests/kubernetes/apiserver.py build/release/act_once build/kubernetes$(addprefix -,$(KUBERNETES))/bin $(KUBERNETES_ARGS)
	@tests/kubernetes/chart.py build/kubernetes$(addprefix -,$(KUBERNETES))/bin || [ $$? -eq 77 ]

# A tenth of the draws of `make test`: what the sanitizers find depends on the paths taken, and a path is taken by the first draws.
# Without the tests that take longest there (tests/long_when_sanitized.txt): `make dev` runs those.
run_sanitized = VRAMTRACK_TEST_PATIENCE=15 RC_PARAMS="seed=$(SEED) max_success=10" VRAMTRACK_TEST_SEED=$(SEED) \
                scripts/run_tests.sh build/sanitized -j $(TEST_JOBS)
sanitized: ##+ run the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer (clang)
	@scripts/setup.sh build test fuzz
	@$(call configure,sanitized)
	@$(call compile,sanitized) --target unit_tests
	@$(run_sanitized) -L '^unit$$'

dev: ##+ run under the same sanitizers what `make sanitized` leaves out: the binary, the servers, the page, the longest unit tests
	@scripts/setup.sh build test web browser fuzz
	@$(call configure,sanitized)
	@$(call compile,sanitized)
	@$(run_sanitized) -LE '^unit$$'

# ThreadSanitizer cannot start where the kernel lays out memory too randomly; without randomness it always does.
same_layout = $(shell setarch -R true 2>/dev/null && echo setarch -R)
# The modules that have threads; the rest of the code runs in one. The probe's programs are run by others.
tsan: ##+ run the tests of the server, the agent, act, live, run and the probe under ThreadSanitizer
	@scripts/setup.sh build test web
	@$(call configure,tsan)
	@$(call compile,tsan) --target threaded_tests
	@VRAMTRACK_TEST_PATIENCE=15 TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp $(same_layout) env $(CTEST) build/tsan -j $(TEST_JOBS) -L '^(act|agent|fleet|live|run|probe)$$' -E '^probe[._]'

FUZZ_SECONDS ?= 20
fuzz: ##+ run each fuzz target on its committed corpus, then on FUZZ_SECONDS (20) of new input
	@scripts/setup.sh build test fuzz
	@$(call configure,fuzz)
	@$(call compile,fuzz) --target fuzz_targets
	@scripts/fuzz.sh build/fuzz $(FUZZ_SECONDS)

FAULT_ROUNDS ?= 100
faults: ##+ let every I/O call and allocation of store, outbox and trace reader fail, the power go FAULT_ROUNDS (100) times 6, and kill the agent as often
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target faults_test vramtrack fake_nvml_current
	@VRAMTRACK_FAULTS=all VRAMTRACK_FAULT_ROUNDS=$(FAULT_ROUNDS) build/release/faults_test --gtest_brief=1
	@VRAMTRACK_KILLS=$(FAULT_ROUNDS) VRAMTRACK_FAKE_LIBRARY=$(CURDIR)/build/release/fake_nvml/current/libnvidia-ml.so.1 python3 tests/cli/outbox_kill.py $(CURDIR)/build/release/vramtrack

FUZZ_LONG_SECONDS ?= 3600
fuzz-long: ##+ run every fuzz target for FUZZ_LONG_SECONDS (3600) in all, and print executions, coverage and findings
	@scripts/setup.sh build test fuzz
	@$(call configure,coverage)
	@$(call compile,coverage) --target fuzz_targets
	@scripts/fuzz_long.py build/coverage --seconds $(FUZZ_LONG_SECONDS)

MUTANTS_ARGS ?=
mutants: ##+ check that a test kills each one-line mutation of tests/mutations.txt
	@scripts/setup.sh build test
	@python3 scripts/mutants.py --jobs $(JOBS) $(MUTANTS_ARGS)

MUTATIONS ?= 1000000
damage-snapshots: ##+ run the snapshot reader on MUTATIONS (1000000) damaged files: it must give an error or a snapshot
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target trace_test
	@MALLOC_TOP_PAD_=67108864 MALLOC_MMAP_THRESHOLD_=33554432 VRAMTRACK_MUTATIONS=$(MUTATIONS) build/release/trace_test --gtest_brief=1 --gtest_filter='*MutatedFilesNeverBreakIt'

TABLES ?= 20000
syntaxes: ##+ write TABLES (20000) tables of readings in every syntax of logs: each must be read alike
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target source_test
	@VRAMTRACK_TEST_SEED=$(SEED) VRAMTRACK_TABLES=$(TABLES) build/release/source_test --gtest_brief=1 --gtest_filter='Syntaxes/OneTable.*'

SOAK_SECONDS ?= 3600
SOAK_DAYS ?= 7
soak: build ##+ run an agent through SOAK_DAYS (7) simulated days and a watch for SOAK_SECONDS (3600): memory and files must stay bounded
	@scripts/setup.sh build test bench
	@$(call configure,bench)
	@$(call compile,bench)
	@bench/agent.py soak $(SOAK_DAYS)
	@bench/agent.py soak $(SOAK_DAYS) --churn
	@bench/watch.sh --soak $(SOAK_SECONDS)

soak-clock: ##+ set the clocks of simulated machines at random for SOAK_SECONDS (3600): no sample may be lost
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target live_test
	@VRAMTRACK_SOAK_SECONDS=$(SOAK_SECONDS) build/release/live_test --gtest_filter=ClockSteps.Soak

bench: ##+ measure the figures of docs/BENCHMARKS.md
	@scripts/setup.sh build test bench python
	@$(call configure,bench)
	@$(call compile,bench)
	@bench/run.sh

bench-fleet: ##+ measure `vramtrack fleet` on real servers: speed, and how often it is right beside PromQL rules (15 minutes)
	@scripts/setup.sh build test bench
	@$(call configure,bench)
	@$(call compile,bench) --target vramtrack load_fleet
	@python3 bench/fleet/fleet.py speed build/bench
	@python3 bench/fleet/fleet.py accuracy build/bench

check-kills: ##+ kill the agent 200 times while a policy of all actions acts on real processes: none is forgotten, no message is missing
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target act_test
	@VRAMTRACK_KILLS=200 build/release/act_test --gtest_filter=Runner.KilledAtAnyTimeItForgetsNothing

check-fleet: ##+ load 8,000 GPUs into real servers: each way of reading must find every leak and alarm at no other GPU (3 minutes)
	@scripts/setup.sh build test bench
	@$(call configure,bench)
	@$(call compile,bench) --target vramtrack load_fleet
	@python3 bench/fleet/fleet.py check build/bench

containment: ##+ put policies to the test: a thousand random processes, and a hundred leaking jobs and their checkpoints (40 minutes)
	@scripts/setup.sh build test bench
	@$(call configure,bench)
	@$(call compile,bench) --target containment
	@build/bench/containment chaos
	@build/bench/containment checkpoints

ACCURACY_ARGS ?= --seed 3 --per-family 40 --jobs $(JOBS)
TRACES ?= ../shared/traces/series
accuracy: ##+ measure how often the verdict is right, beside other rules: the tables of docs/ACCURACY.md (test split)
	@scripts/setup.sh build test bench
	@$(call configure,bench)
	@$(call compile,bench) --target accuracy
	@build/bench/accuracy --split test $(ACCURACY_ARGS) --recordings tests/recordings \
	  $(if $(wildcard $(TRACES)),--traces $(TRACES))

PROBE_ACCURACY_ARGS ?= --jobs $(JOBS)
probe-accuracy: ##+ measure how often `vramtrack run` names the right line: 40 programs that leak and 40 healthy ones (docs/BENCHMARKS.md)
	@scripts/setup.sh build test web python devices
	@$(call configure,release,tests)
	@$(call compile,release) --target torch_lane vramtrack probe_library probe_library_cuda probe_driver fake_amdhip64 fake_ze_loader
	@bench/programs/measure.py --build build/release $(PROBE_ACCURACY_ARGS)

attach-accuracy: ##+ measure how often `vramtrack trace live` names the right line: the same programs, started first and attached ten seconds later (root)
	@scripts/setup.sh build test web python devices
	@$(call configure,release,tests)
	@$(call compile,release) --target torch_lane vramtrack probe_driver fake_amdhip64 fake_ze_loader
	@bench/programs/measure.py --attach --build build/release $(PROBE_ACCURACY_ARGS)

keepers: ##+ measure how often `vramtrack run` names the variable that keeps memory: 40 programs that leak and 20 healthy ones (bench/keepers)
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target vramtrack probe_library probe_library_cuda probe_driver
	@bench/keepers/measure.py --build build/release $(KEEPERS_ARGS)

# The gate was tuned on GATE_SEED 0; another seed measures it on series that nobody has seen.
GATE_RUNS ?= 200
GATE_SEED ?= 0
gate-families: ##+ run the leak gate GATE_RUNS (200) times on each family of healthy bodies and of leaks, with seeds from GATE_SEED (0) on
	@scripts/setup.sh build test
	@$(call configure,release,tests)
	@$(call compile,release) --target gate_families
	@build/release/gate_families $(GATE_RUNS) $(GATE_SEED)

lint: ##+ run clang-format on every file, and clang-tidy on those that changed since origin/main (or in the last 20 commits)
	@scripts/setup.sh build test lint
	@$(call configure,release,tests)
	@scripts/lint.sh build/release --changed

lint-all: ##+ run clang-format and clang-tidy on every file
	@scripts/setup.sh build test lint
	@$(call configure,release,tests)
	@scripts/lint.sh build/release

format: ##+ rewrite the sources with clang-format
	@scripts/setup.sh lint
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format -i

format-check: ##+ check that every source is as clang-format writes it
	@scripts/setup.sh format
	@scripts/lint.sh --format

install: build ## install into $(DESTDIR)$(PREFIX)
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)' --strip

# The time that packages carry is that of the commit: the same sources give the same packages, and `make try-deb` after `make dist`
# leaves the checksums right.
committed := $(shell git log -1 --format=%ct 2>/dev/null)
ifneq ($(committed),)
deb portable wheels aarch64 manual chart dist: export SOURCE_DATE_EPOCH ?= $(committed)
endif

deb: ## build dist/vramtrack_VERSION_ARCH.deb from the binary that `make test` tests
	@scripts/setup.sh build test web package
	@$(call configure,release,tests)
	@$(call compile,release) --target product
	@cd build/release && cpack -G DEB >cpack.log || { cat cpack.log; exit 1; }
	@mkdir -p dist && cp build/release/vramtrack_*.deb dist/ && ls -l dist/*.deb

try-deb: deb ##+ try the .deb's installation, upgrade, removal and purge in a bare Debian (needs root)
	@scripts/setup.sh chroot
	@scripts/try_deb.sh dist/vramtrack_$(VERSION)_$$(dpkg --print-architecture).deb

portable: ## build dist/vramtrack-VERSION-linux-ARCH.tar.gz: one binary, with the agent, that needs only glibc
	@scripts/setup.sh build web package
	@scripts/library_sources.sh
	@$(call configure,portable)
	@$(call compile,portable) --target product
	@scripts/portable.sh build/portable

try-portable: portable ##+ start the portable program and its agent in a bare Debian (needs root)
	@scripts/setup.sh chroot
	@scripts/try_portable.sh dist/vramtrack-$(VERSION)-linux-$(shell uname -m).tar.gz

wheels: ## build dist/*.whl of the Python package for every Python found, and test each
	@scripts/setup.sh wheel wheels
	@JOBS=$(JOBS) scripts/wheels.sh

try-wheel: ##+ install the wheel and run install.sh in bare systems without compiler or network (needs root, and dist/ as `make dist` leaves it)
	@scripts/setup.sh chroot
	@scripts/try_wheel.sh --bare dist

aarch64: ## cross-build the .deb and the portable archive for aarch64, and run its unit tests under qemu (needs root)
	@scripts/setup.sh web package chroot
	@JOBS=$(JOBS) scripts/aarch64.sh

manual: ## build the manual as a site, dist/vramtrack-VERSION-manual.tar.gz: open its index.html, no server is needed
	@scripts/setup.sh wheels
	@scripts/site.py
	@mkdir -p dist && tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(or $(SOURCE_DATE_EPOCH),0) --transform 's,^html,vramtrack-$(VERSION)-manual,' \
	  -C build/site -cf - html | gzip -n9 >dist/vramtrack-$(VERSION)-manual.tar.gz && ls -l dist/*manual.tar.gz

chart: ## pack the Helm chart, dist/vramtrack-VERSION-chart.tgz
	@grep -q '^version: $(VERSION)$$' contrib/kubernetes/helm/vramtrack/Chart.yaml && grep -q '^appVersion: $(VERSION)$$' contrib/kubernetes/helm/vramtrack/Chart.yaml \
	  || { echo "chart: Chart.yaml names another version than $(VERSION)" >&2; exit 1; }
	@mkdir -p dist && tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(or $(SOURCE_DATE_EPOCH),0) -C contrib/kubernetes/helm -cf - vramtrack \
	  | gzip -n9 >dist/vramtrack-$(VERSION)-chart.tgz && ls -l dist/*chart.tgz

DIST ?=
dist: ## build every package into dist/, with checksums, an SBOM and release notes; DIST: steps and options of scripts/dist.py
	@scripts/dist.py $(DIST)

# podman's and docker's archives differ; both load either. With its whole name the image has the same one in both, which a cluster then
# finds by the chart's `vramtrack:VERSION`: podman alone would call it localhost/vramtrack.
container: image = docker.io/library/vramtrack:$(VERSION)
container: ## build an image with the program, and save it as dist/vramtrack-VERSION-image.tar, with podman or docker
	@engine=$$(command -v podman || command -v docker) || { echo "container: neither podman nor docker is here" >&2; exit 1; }; \
	  $$engine build -t $(image) -f Containerfile . && scripts/try_container.sh $$engine $(image) && \
	  mkdir -p dist && rm -f dist/vramtrack-$(VERSION)-image.tar && $$engine save -o dist/vramtrack-$(VERSION)-image.tar $(image)

clean: ## remove build/ and dist/
	@rm -rf build dist page/build page/dist

# Shortcuts. The build itself is CMake's: presets debug, release, asan, tsan and fuzz.
JOBS ?= 2
export JOBS
export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)

all: release

# What users run, in build/release: the library, its examples and the demo.
release:
	@.ci/setup library
	@.ci/release

# The lanes of .ci/lanes: before each commit; everything that runs within ten minutes;
# all that CI runs; the long forms, for the night. Each ends with "N passed, M failed".
check:
	@.ci/lane check

test:
	@.ci/setup test
	@.ci/lane test

ci:
	@.ci/run

nightly: setup
	@.ci/lane nightly

demo:
	@.ci/demo

# A host that gives up after a minute, and a tool that takes three: with segue-proxy the
# host gets the result. MINUTE=2 makes a minute of 2 s.
demo-proxy:
	@.ci/demo-proxy --minute $(or $(MINUTE),60)

# The task board on streams, in a page with buttons that cut its connection and kill the
# server. Prints the URL of the page.
demo-board:
	@.ci/demo-board

# The Python package: a wheel in build/python/dist, and an environment that has it,
# build/python/venv.
python:
	@.ci/setup sdk
	@.ci/python wheel install

# The Node package: a tarball for npm in build/node/dist, and a directory where it is
# installed, build/node/env.
node:
	@.ci/setup sdk
	@.ci/node pack install

# Packages that contain all libraries that Segue uses, in build/packages, and their test
# in roots that have none of these libraries. The libraries are built once. TARGET is this
# machine with glibc 2.28 by default, and may be another one (.ci/packages): then the
# packages are tested in an emulator. TARGET=all is all of them, one after another.
packages:
	@.ci/setup packages
	@.ci/packages $(TARGET) wheel npm archive symbols sdist check

packages-test: packages
	@.ci/packages $(TARGET) again bare free_threaded

# Debian packages, for the Debian that this runs on, in build/packages. The test installs
# them in a bare root. SUITE=trixie builds them in a root of that Debian, for it. With
# SUITE=bookworm DEB_ARCH=arm64, they are for another architecture.
deb:
	@.ci/setup deb
	@.ci/deb $(SUITE) build lint

deb-test:
	@.ci/setup deb
	@.ci/deb $(SUITE) build lint again root

# What must hold before a release: versions, changelog, ABI, packages.
release-check:
	@.ci/release-check

# The site of the documentation, in build/docs. Only the first run needs the network, for
# its tools. Reading the site needs none.
docs:
	@.ci/setup docs
	@.ci/docs build

bench: build-release
	@.ci/setup-peers
	@.ci/python ready
	@.ci/node ready
	@. .ci/path && python3 -B tests/bench/run.py

# The echo calls and the reports of progress beside other SDKs.
bench-peers: build-release
	@.ci/setup-peers packages servers bench
	@. .ci/path && python3 -B tests/bench/run.py --only peers

# FUZZ_SECONDS per target, 30 by default.
fuzz: build-fuzz
	@.ci/fuzz

# The long forms of what CI runs shortly, from new seeds: SEED_MINUTES each, 20 by default.
seeds: build-asan build-release build-fuzz
	@.ci/seeds

# Mixed load with faults over every store, SOAK_MINUTES in all, 120 by default.
soak: build-release
	@python3 -B tests/soak/run.py --minutes $(or $(SOAK_MINUTES),120)

interop: build-release
	@.ci/setup-peers
	@tests/interop/run

# A server in a route handler of Next: builds and serves an app with the real Next.
next:
	@tests/node/next/run

# Kills servers with -9 a thousand times, and more; takes an hour. The second half runs
# even if the first fails.
kill-matrix: build-release
	@.ci/lane kill-matrix-long servers-long

# Random faults at servers and clients of all three languages, for MINUTES, 120 by default.
chaos: build-release
	@.ci/python setup wheel place
	@.ci/node ready
	@. .ci/path && python3 -B tests/chaos/run.py --minutes $(or $(MINUTES),120)

# The whole system from many seeds: SEEDS of them, a million by default, from seed FROM on.
# `build/debug/tests/simulation/simulation --shrink SEED` makes a failing seed short.
simulate: build-debug
	@SEEDS=$(or $(SEEDS),1000000) FROM=$(or $(FROM),1) \
	    build/debug/tests/simulation/simulation

# Puts defects of earlier versions back, one by one, and prints the seeds that find them.
simulate-defects:
	@tests/simulation/defects/run

# The official conformance suites against Segue's server and client, over HTTP.
conformance: build-release
	@.ci/setup-peers
	@python3 -B tests/conformance/run.py

lint: debug
	@ctest --preset debug -L '^lint$$'

format:
	@python3 -B tests/lint/format.py --fix

# Accepts an intended change of the ABI.
abi: debug
	@python3 -B tests/lint/abi.py --library build/debug/libsegue.so --update

debug: build-debug

build-%:
	@cmake --preset $* >/dev/null
	@cmake --build --preset $*

setup:
	@.ci/setup

clean:
	rm -rf build

.NOTPARALLEL:
.PHONY: all check test ci nightly demo demo-proxy demo-board python node packages packages-test deb deb-test release-check docs bench bench-peers fuzz seeds soak interop next kill-matrix chaos simulate simulate-defects conformance lint format abi debug release setup clean

# SPDX-License-Identifier: Apache-2.0
# A thin front to meson: `make help` lists what there is.
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
MESON_FLAGS ?=

.PHONY: all run test test-all bench soak fuzz format install deb deps clean help

all: deps ## build build/sonde
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX) $(MESON_FLAGS)
	@ninja -C $(BUILD) sonde

run: all ## profile the whole machine for 10 s into profile.html
	@$(BUILD)/sonde record -d 10 -o profile.html --top 15

test: ## every test that this machine can run
	@scripts/install-deps test
	@scripts/run-tests

test-all: ## the same, the slow tests, and each fuzzer for FUZZ_SECONDS (60)
	@scripts/install-deps test
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/run-tests --all

bench: all ## the cost of everything, beside its target
	@scripts/install-deps test
	@meson test -C $(BUILD) --benchmark --verbose --num-processes 1

soak: all ## an hour of the agent and of the recorder, whose memory must stay flat
	@scripts/install-deps test
	@ninja -C $(BUILD)
	@SONDE_SOAK_REPORTS=7200 meson test -C $(BUILD) --no-rebuild --timeout-multiplier 10 --verbose agent-soak soak-long

fuzz: ## each fuzzer for FUZZ_SECONDS (60)
	@scripts/install-deps test
	@scripts/run-fuzz $(FUZZ_SECONDS)

format: ## clang-format all C
	@git ls-files -z '*.c' '*.h' | xargs -0 clang-format-14 -i

install: all ## into DESTDIR, under PREFIX (/usr/local)
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@ninja -C $(BUILD) sonde src/cli/sonde.1
	@DESTDIR=$(DESTDIR) meson install --no-rebuild -C $(BUILD)

deb: all ## a Debian package of it, into build/
	@scripts/make-deb $(BUILD)

deps: # a no-op of some milliseconds when nothing is missing
	@scripts/install-deps build

clean: ## remove the build folders
	@rm -rf build build-clang-asan build-asan build-clang build-static build-fuzz

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

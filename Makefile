# Each target installs its own requirements on a fresh machine. You need Python 3.11+, pip and network access.

UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
RUN := $(UV) run --frozen --no-sync
SEED ?=
COUNT ?= 2000
JOBS ?= 2
KILLS ?= 500
CUTS ?= 2000

.DEFAULT_GOAL := help
.PHONY: help setup libgomp test-tools chat test check format simulate crash power-cuts gateway-kills bench pictures fuzz clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

$(UV):
	python3 -m venv .uv && .uv/bin/pip install --quiet --disable-pip-version-check uv

.venv/.ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --quiet --all-extras
	@touch $@

# `$(call debian,PACKAGES)` installs Debian packages if we are root, and prints an instruction otherwise.
debian = { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	{ apt-get install -qq -y $(1) || { apt-get update -qq && apt-get install -qq -y $(1); } } >/dev/null 2>&1; } || \
	echo "Not installed: $(1). Install it with your system's package manager."

# The embedded model needs a library that small Linux images lack. Everything else works without it.
libgomp: .venv/.ready
	@test "$$(uname)" != Linux || .venv/bin/python -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2>/dev/null || \
	$(call debian,libgomp1)

# Programs that the tests of speech, sandbox, search, git, the web page and power cuts need.
test-tools: setup
	@command -v espeak-ng >/dev/null && command -v bwrap >/dev/null && command -v rg >/dev/null && \
	command -v git >/dev/null && command -v chromium >/dev/null && command -v strace >/dev/null || \
	$(call debian,espeak-ng bubblewrap ripgrep git chromium strace)

setup: .venv/.ready libgomp ## install everything into .venv

chat: setup ## start the agent
	@$(RUN) hark $(ARGS)

# Without bytecode files, each of the many test processes would compile every module again.
test: export PYTHONDONTWRITEBYTECODE =
test: setup test-tools ## run all tests
	$(RUN) pytest -n $(JOBS) --dist worksteal

check: setup ## check style, types, layers, structure and prose
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) lint-imports
	$(RUN) python -m tests.structure
	$(RUN) python -m tests.prose
	$(RUN) pyright

format: setup ## format the code and apply automatic fixes
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

simulate: setup ## run generated users, crashes and timings: COUNT=100000, or SEED=n to replay one
	$(RUN) python -m tests.simulation $(if $(SEED),--seed $(SEED) --trace,--count $(COUNT) --jobs $(JOBS))

crash: setup ## kill -9 a process under load, KILLS=500 times, and count lost and duplicated messages
	$(RUN) python -m tests.crash --kills $(KILLS)

power-cuts: setup test-tools ## cut the power CUTS=2000 times in four models, and on ext4, XFS and btrfs if root can mount them
	@test "$$(id -u)" != 0 || { command -v mkfs.xfs >/dev/null && command -v mkfs.btrfs >/dev/null; } || \
	$(call debian,xfsprogs btrfs-progs)
	$(RUN) python -m tests.power_cuts --cuts $(CUTS) $(if $(SEED),--seed $(SEED))

gateway-kills: setup ## kill -9 a gateway with CHATS=200 chats and MESSAGES=20000 messages, and audit each message
	$(RUN) python -m tests.gateway_kills --chats $(or $(CHATS),200) --messages $(or $(MESSAGES),20000) $(if $(SEED),--seed $(SEED))

bench: setup ## measure latency, CPU and memory, compared with a bare loop
	$(RUN) python -m bench

pictures: setup ## regenerate the pictures and the keys page of the documentation
	$(RUN) python -m docs.make_keys
	$(RUN) python -m docs.make_pictures

fuzz: setup ## random keys for the terminal app, then random text for chat markup and all parsers, SECONDS=120 for each
	$(RUN) python -m tests.surfaces.terminal.fuzz --seconds $(or $(SECONDS),120)
	$(RUN) python -m tests.surfaces.chat.fuzz --seconds $(or $(SECONDS),120)
	$(RUN) python -m tests.fuzz --seconds $(or $(SECONDS),120) $(if $(TARGET),--target "$(TARGET)")

clean: ## remove the files that setup created
	rm -rf .venv .uv

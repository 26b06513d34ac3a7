# make read   set up, show the first stop, then fetch and resolve everything
# make test   set up what tests need, run them: about ten minutes on two cores
# make further  the other cases of tests that have many, and long ways: CI runs both
# make slow   the tests that kill comparisons, run four ranks or labs, or visit every page,
#             after every experiment (make proofs)

PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python -m readerkit
# What is installed, and how large it is, stands in one line before; pip adds only errors.
QUIETLY := -m pip install -qq --disable-pip-version-check
PIP := $(BIN)/python $(QUIETLY)

.PHONY: read test further slow proofs fetched bench sky vnu
.DELETE_ON_ERROR:

read: .venv/.toolkit
	@echo "== Megatron-LM: fetching the pinned source"
	@$(RUN) fetch megatron
	@echo "== The first stop"
	@$(RUN) start </dev/null  # whole: nobody may be there to answer
	@$(MAKE) --no-print-directory .venv/.torch
	@echo "== PyTorch and the others: fetching the pinned source"
	@$(RUN) fetch  # one that the index lacks comes by git, or one line says how
	@echo "== Every annotation, held against its lock"
	@$(RUN) annotate --check
	@echo "== The reading site"
	@$(RUN) site build
	@echo
	@echo "All of it is on this disk now, and works without a network. Next:"
	@echo "  . $(BIN)/activate                  puts readerkit on your PATH"
	@echo "  readerkit start                    the first stop once more, a screen at a time"
	@echo "  readerkit annotate megatron        the notes on Megatron-LM"
	@echo "  readerkit annotate pytorch         the notes on PyTorch"
	@echo "  readerkit note FILE:LINES          write one of your own"
	@echo "  readerkit site serve               the site, reloading while you write"

# Tests start the command hundreds of times: none of it is compiled anew each time.
unexport PYTHONDONTWRITEBYTECODE
# Tests wait for ranks, servers and browsers: one process more than there are cores. The
# slow folders come first (tests/conftest.py), so that none is left over for the end.
WORKERS = $$($(BIN)/python -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
test: fetched
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
# mypy has half a minute's work for one core: tests begin beside it, and what is wrong with
# types is told at the end. Fresh tests are compiled by one process, so that no worker has to.
	@told=$$(mktemp); $(BIN)/mypy >$$told 2>&1 & mypy=$$!; \
	trap 'kill $$mypy 2>/dev/null; rm -f $$told' EXIT; trap : INT TERM; \
	[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -q >/dev/null; \
	$(PYTEST) -m "not slow and not further"; tests=$$?; \
	wait $$mypy || { typed=$$?; cat $$told; }; exit $$((tests ? tests : typed))

further: fetched
	@$(PYTEST) -m "further and not slow"

slow: proofs
	@$(PYTEST) -m slow

proofs: fetched
	@$(RUN) prove --all

fetched: .venv/.test
	@$(RUN) fetch

# SkyPilot wants an older click and 560 MB: an environment of its own, and no part of test.
sky: .venv/.test .venv-sky/bin/sky
	@$(BIN)/python -m pytest tests/readerkit/commands/test_lab_tasks.py

.venv-sky/bin/sky:
	@echo "== Installing SkyPilot into .venv-sky (about 560 MB)"
	@$(PYTHON) -m venv .venv-sky
	@.venv-sky/bin/python $(QUIETLY) "skypilot[runpod]>=0.11,<0.15"

# The Nu checker of HTML is 32 MB and wants Java: no part of test, which takes it if there.
vnu: fetched node_modules/vnu-jar
	@$(BIN)/python -m pytest tests/browser/test_valid.py

node_modules/vnu-jar:
	@echo "== Fetching the Nu checker into node_modules (about 32 MB)"
	@npm install --silent --no-save --no-package-lock --prefix . vnu-jar

# pycco brings a package called tests, which must not stand before ours.
bench: export PYTHONPATH = .
bench: .venv/.test
	@$(PIP) --editable '.[bench]'
ifdef BASE
	@$(BIN)/python benchmarks/beside.py $(BASE)
else
	@$(BIN)/python benchmarks/annotate/run.py
	@$(BIN)/python benchmarks/site/run.py
endif

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	  v >= (3, 11) or sys.exit("readerkit needs Python 3.11 or newer, this is %d.%d: make PYTHON=python3.12 ..." % v[:2])'
	@echo "== Making .venv"
	@$(PYTHON) -m venv .venv

.venv/.toolkit: pyproject.toml | .venv/bin/python
	@echo "== Installing the toolkit and the libraries it stands on (about 20 MB)"
	@$(PIP) --editable .
	@touch $@

.venv/.torch: pyproject.toml tools/install_torch.py | .venv/.toolkit
	@$(BIN)/python tools/install_torch.py
	@touch $@

.venv/.test: pyproject.toml | .venv/.torch
	@echo "== Installing what the tests need"
	@$(PIP) --editable '.[test]'
	@touch $@

# A fresh machine needs Python 3.10 or newer, make and git. The first target that needs it makes .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Folders without a test that measures time: collecting them takes longer than all others together.
NOT_TIMED := --ignore=tests/unit --ignore=tests/browser
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint format generated help
.DELETE_ON_ERROR:

help:
	@echo "make demo       examine examples/pets and write demo-report/report.html"
	@echo "make test       run the tests"
	@echo "make lint       ruff check, ruff format --check, mypy --strict, import-linter, how long files and classes are"
	@echo "make format     let ruff rewrite what it can"
	@echo "make generated  check that generated files are up to date"

demo: $(VENV)/.installed
	$(BIN)/doctor run -o demo-report examples/pets/train.py -- examples/pets/config.json
	@echo "Open $(CURDIR)/demo-report/report.html"

# Three at a time, since processes of many tests sleep or wait; then two at a time what measures sleeping programs; then
# one by one what measures anything else. The slow ones come first and in a row, and would all go to one of the three
# without stealing. pytest ends with 5 where it found no test: PYTEST_ARGS may name tests of one part only, but not
# none at all.
test: $(VENV)/.installed-dev
	@found=; \
	part() { \
		status=0; $(BIN)/python -m pytest "$$@" $(PYTEST_ARGS) || status=$$?; \
		case $$status in 0) found=yes ;; 5) ;; *) exit $$status ;; esac; \
	}; \
	part -n 3 --dist worksteal -m "not sleeping and not alone"; \
	part -n 2 --dist worksteal -m "sleeping and not alone" $(NOT_TIMED); \
	part -m alone $(NOT_TIMED); \
	if [ -z "$$found" ]; then echo "PYTEST_ARGS selects no test: $(PYTEST_ARGS)" >&2; exit 5; fi

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/house.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The schemas are generated from the dataclasses, and a page from the catalogue; they are compared and left as they were.
generated: $(VENV)/.installed
	@$(BIN)/python -c "import pathlib, sys; from bottleneck_doctor.documents.report import json_schema; \
	sys.exit(pathlib.Path('docs/report.schema.json').read_bytes() != json_schema() and \
	'docs/report.schema.json is out of date: run .venv/bin/python -m bottleneck_doctor.documents.report')"
	@$(BIN)/python -c "import pathlib, sys; from bottleneck_doctor.documents.check_json import json_schema; \
	sys.exit(pathlib.Path('docs/check.schema.json').read_bytes() != json_schema() and \
	'docs/check.schema.json is out of date: run .venv/bin/python -m bottleneck_doctor.documents.check_json')"
	@$(BIN)/python -c "import pathlib, sys; from bottleneck_doctor.documents.stored_baseline import json_schema; \
	sys.exit(pathlib.Path('docs/baseline.schema.json').read_bytes() != json_schema() and \
	'docs/baseline.schema.json is out of date: run .venv/bin/python -m bottleneck_doctor.documents.stored_baseline')"
	@$(BIN)/python docs/make_fixes.py --check
	@echo "generated files are up to date"

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10) and 'Python 3.10 or newer is needed: make PYTHON=...')"
	$(PYTHON) -m venv $(VENV)

# A stamp, so that pip runs again only after the dependencies changed.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[demo]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@ $(VENV)/.installed

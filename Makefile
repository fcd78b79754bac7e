# Two commands do all the set-up: `make demo` runs the main job, `make test` the tests.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check
READY = $(VENV)/.ready
SEED ?= 0
# Modules are compiled once and not in each of many processes, whatever the shell says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo explore test check lint docs bench trials figures diagrams reproduction constraints clean help

help:
	@echo "make demo         set up, reproduce the paper at small size: out/reproduction/report.html"
	@echo "make explore      set up, open the explorer in the browser"
	@echo "make test         set up, lint, type checks, documentation, tests"
	@echo "make docs         set up, build the documentation into out/site, check its links"
	@echo "make bench        set up, measure speed, write docs/research-notes/benchmarks.md and its history"
	@echo "make trials       set up, hostile input, kills, full disks ..., write docs/research-notes/trials.md (40 minutes)"
	@echo "make reproduction set up, reproduce the paper at full size (hours without a GPU)"
	@echo "make figures      draw the figures of the README again"
	@echo "make diagrams     compute the phase diagrams that ship with the explorer again"
	@echo "make constraints  compile the pinned versions anew"

# All that is needed is pinned, so that nothing is to be worked out; not compiled ahead: Python
# compiles what is imported, and most never is. uv takes seconds where pip takes half a minute; pip
# does it where uv cannot (an index that only pip is told of, a platform without uv).
PACKAGES = --quiet --no-deps -r constraints.txt -e .
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'dotphase needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -c constraints.txt uv && $(BIN)/uv pip install --python $(BIN)/python $(PACKAGES) || $(PIP) install --no-compile $(PACKAGES)
	touch $(READY)

demo: $(READY)
	$(BIN)/python -m reproduction --quick --out out/reproduction

explore: $(READY)
	$(BIN)/dotphase explore

# At the same time: each of them leaves cores idle by itself.
test: $(READY)
	$(MAKE) --jobs 3 lint docs check

check: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Sphinx does not renew a page of source code when only the pages that link to it have changed.
docs: $(READY)
	rm -rf out/site/_modules
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --doctree-dir out/doctrees docs out/site
	$(BIN)/python docs/check_site.py out/site
	$(BIN)/python docs/check_numbers.py

bench: $(READY)
	$(BIN)/python benchmarks/page.py

trials: $(READY)
	$(BIN)/python trials/all.py --seed $(SEED)

figures: $(READY)
	$(BIN)/python docs/pictures/animation.py
	$(BIN)/python docs/pictures/two_minima.py --compute
	$(BIN)/python benchmarks/explorer_screenshots.py docs/images/explorer.png
	$(BIN)/python benchmarks/explorer_screenshots.py docs/images/watch-it-learn.png

diagrams: $(READY)
	$(BIN)/python -m dotphase.explorer.build_diagrams

reproduction: $(READY)
	$(BIN)/python -m reproduction --full --out docs/reproduction

constraints: $(READY)
	$(BIN)/uv pip compile --universal --python-version 3.11 --extra dev --extra cluster --extra docs --extra explore --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache

# make demo: optimise the bundled kernels and print what it gained. make test: every check.
# make bench: compare with greedy rewriting and other simplifiers, and write a report. make bench QUICK=1: within 5 minutes;
# CORPUS="a.jsonl b.jsonl", PEERS=all and BENCH="--no-gates ..." choose what is compared. make comparison: the report in docs.
# make docs: the documentation site in build/site, with every notebook run and every rule proved.
# make fuzz SECONDS=600: random inputs of every kind against independent evaluators; SEED=7, ONLY=expressions,kernels.
# make optimum: how far answers are from the least cost, as far as enumeration tells; OPTIMUM="--each N --costs opcount".
# All first build .venv with the newest Python >= 3.12 that runs; make PYTHON=/path/to/python chooses another.

SHELL := /bin/bash
BIN := .venv/bin
INSTALLED := .venv/installed
TYPES := build/types/eqsat

.PHONY: demo bench comparison optimum docs fuzz test format clean

demo: $(INSTALLED)
	@$(BIN)/python benchmarks/demo.py

bench: $(INSTALLED)
	@$(BIN)/python benchmarks/bench.py $(if $(QUICK),--quick) $(if $(PEERS),--peers $(PEERS)) $(BENCH) $(CORPUS)

comparison: $(INSTALLED)
	@$(BIN)/python benchmarks/bench.py --peers all -o build/comparison --command "make comparison" \
	    --report docs/comparison.md --headline README.md $(BENCH)

optimum: $(INSTALLED)
	@cd benchmarks && ../$(BIN)/python -m optimum -o ../docs/optimum.md $(OPTIMUM)

docs: $(INSTALLED)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build && echo "build/site/index.html"

fuzz: $(INSTALLED)
	@PYTHONPATH=tests/helpers nice -n 19 $(BIN)/python tests/helpers/fuzzing.py --seconds $(or $(SECONDS),600) \
	    --seed $(or $(SEED),0) $(if $(ONLY),--only $(ONLY))

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# mypy cannot follow the package directories of an editable install: give it the installed layout as links
	@mkdir -p $(TYPES) && find $(TYPES) -type l -delete
	@ln -s $(CURDIR)/eqsat/* $(TYPES)/ && ln -s $(CURDIR)/rules $(CURDIR)/extract $(TYPES)/
	MYPYPATH=build/types $(BIN)/mypy -p eqsat
	@# tests start Python some hundred times: what it compiles is kept, whatever the environment says of that
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2 --dist worksteal

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build

# a name on the path may be a shim that does not run, so every candidate is tried
$(INSTALLED): pyproject.toml
	@for python in "$(PYTHON)" python3.14 python3.13 python3.12 \
	    "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python \
	    "$$(pyenv root 2>/dev/null)"/versions/3.1[2-9]*/bin/python python3; do \
	  if [ -n "$$python" ] && "$$python" -c \
	      'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then \
	    found="$$python"; break; \
	  fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "eqsat needs Python 3.12 or newer with venv: install python3.12 (and python3.12-venv) or run 'pyenv install 3.12'" >&2; \
	  exit 1; \
	fi; \
	echo "building .venv with $$("$$found" --version)"; \
	"$$found" -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[exact,check,plots,bench,dev,docs]'
	@touch $@

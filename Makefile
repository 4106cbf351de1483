# Requires only make and Python >= 3.11 with pip. `make help` lists the commands.

# Distributions build Python with optimisations that pyenv leaves out, so theirs is preferred.
PYTHON ?= $(shell /usr/bin/python3 -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo /usr/bin/python3 || echo python3)
UV_VERSION := 0.13.8

VENV := .venv
RUN := $(VENV)/bin/python
UV := .tools/bin/uv
UV_STAMP := .tools/uv-$(UV_VERSION).stamp
EXEC := $(RUN) -m embedded exec

# Tests of the whole system, of the files in deploy/ and of other versions, walks over all pages,
# and a sample of each laboratory (labs/README.md). They take minutes. Some install packages of npm.
# The files of tests/longest_files.txt run first.
SYSTEM_TESTS := \
	labs \
	tests/accounts/test_request_records.py::test_a_record_is_found_by_each_of_its_values_through_an_index \
	tests/api/test_idempotency_state_machine.py \
	tests/api/test_kinds_of_processes.py \
	tests/api/test_slow_bodies.py \
	tests/catalogue/test_libreoffice.py \
	tests/catalogue/test_next_price.py::test_a_next_price_holds_from_its_time \
	tests/catalogue/test_price_lists.py::test_an_entry_holds_from_its_start_to_its_end \
	tests/catalogue/test_reading_tables.py::test_a_hostile_workbook_is_refused_in_bounded_time \
	tests/catalogue/test_reading_tables.py::test_no_text_of_a_row_takes_long \
	tests/catalogue/test_reading_tables.py::test_the_time_for_wide_rows_grows_with_their_elements \
	tests/catalogue/test_workbooks.py::test_an_archive_that_unpacks_to_too_much_is_refused \
	tests/catalogue/test_workbooks.py::test_each_kind_of_file_has_its_own_limits \
	tests/company_sign_in \
	tests/concurrency/test_all_writers.py::test_all_writers_at_once \
	tests/concurrency/test_cleanup.py::test_cleanup_during_claims_and_takeovers_loses_nothing \
	tests/concurrency/test_offer_under_lock.py::test_each_sale_among_price_changes_has_the_price_of_its_moment \
	tests/concurrency/test_one_key.py::test_concurrent_requests_over_the_network_buy_once \
	tests/concurrency/test_refund_and_credit_at_once.py::test_refund_and_credit_at_once_pay_back_the_price_once \
	tests/core/test_cache.py::test_control_without_the_pause_every_command_waits_for_the_cache \
	tests/core/test_migrating_while_selling.py \
	tests/core/test_quick_starts.py \
	tests/core/test_settings_of_processes.py \
	tests/core/test_unsafe_settings.py::test_an_open_connection_to_another_host_causes_a_warning \
	tests/core/test_unsafe_settings.py::test_an_unsafe_setting_stops_the_start \
	tests/core/test_unsafe_settings.py::test_celery_refuses_unsafe_settings \
	tests/core/test_unsafe_settings.py::test_safe_settings_pass_the_deployment_checks \
	tests/core/test_unsafe_settings.py::test_safe_settings_start \
	tests/core/test_unsafe_settings.py::test_what_merchants_miss_causes_a_warning \
	tests/core/test_version.py::test_a_command_prints_both_versions \
	tests/deploy \
	tests/e2e/journeys \
	tests/e2e/test_desk_in_browser.py \
	tests/e2e/test_hammered_sign_in.py \
	tests/e2e/test_merchant_site_in_browser.py \
	tests/e2e/test_staff_log_in.py \
	tests/e2e/test_static_files.py \
	tests/e2e/test_written_by_the_web_server.py \
	tests/embedded \
	tests/languages/test_file_problems.py \
	tests/languages/test_german_staff_pages.py \
	tests/languages/test_pseudo_language.py \
	tests/merchants/docs/other_languages \
	tests/merchants/docs/test_docs_pages.py::test_every_link_works \
	tests/merchants/docs/test_programs_that_buy.py \
	tests/merchants/docs/test_programs_that_reconcile.py \
	tests/merchants/docs/test_programs_that_wait.py \
	tests/merchants/money/test_exports.py::test_a_workbook_has_its_headings_in_the_readers_language \
	tests/merchants/money/test_exports.py::test_every_list_leads_to_its_files \
	tests/merchants/money/test_large_files_over_http.py \
	tests/merchants/money/test_signed_statement.py::test_each_forgery_is_found \
	tests/merchants/money/test_prepared_files.py::test_a_worker_builds_what_a_request_would_send \
	tests/merchants/money/test_prepared_files.py::test_a_large_file_is_built_in_little_memory \
	tests/merchants/pages/test_accessibility.py \
	tests/merchants/pages/test_demo_history.py \
	tests/merchants/pages/test_identity_matrix.py::test_every_other_person_gets_the_expected_answer \
	tests/merchants/sign_in/test_password_resets_use_an_index.py \
	tests/metrics/test_alertmanager.py \
	tests/metrics/test_alerts_fire.py \
	tests/metrics/test_counters_of_processes.py \
	tests/metrics/test_prometheus.py \
	tests/openapi/generators \
	tests/openapi/test_breaking_changes.py \
	tests/openapi/test_document_in_threads.py \
	tests/openapi/test_generated_client.py \
	tests/operators/pages/test_admin_pages.py::test_each_link_of_a_page_works \
	tests/operators/pages/test_admin_permissions.py::test_each_role_can_use_every_filter_it_sees \
	tests/operators/pages/test_exports.py::test_a_file_is_the_same_in_each_language \
	tests/operators/pages/test_exports.py::test_a_workbook_has_its_headings_in_the_readers_language \
	tests/operators/pages/test_exports.py::test_every_list_leads_to_its_files \
	tests/operators/pages/test_list_filters.py \
	tests/operators/pages/test_list_queries.py \
	tests/operators/pages/test_pages_are_audited.py::test_each_action_is_recorded \
	tests/operators/pages/test_role_matrix.py::test_a_role_has_its_rights_its_pages_and_no_dead_link \
	tests/operators/pages/test_role_matrix.py::test_each_role_downloads_the_lists_that_it_sees_if_it_may_export \
	tests/operators/pages/test_search.py::test_a_role_finds_only_what_it_may_see \
	tests/operators/pages/test_search.py::test_every_search_of_a_large_table_uses_an_index \
	tests/operators/upkeep/test_audit_trail.py::test_the_page_is_one_read_of_one_table_by_ranges_of_indexes \
	tests/performance/test_plans_on_large_tables.py \
	tests/proxies \
	tests/release \
	tests/roles/test_documented_roles.py \
	tests/roles/test_rights.py::test_an_earlier_version_leaves_the_rights_of_a_newer_one \
	tests/sdk/test_collections.py \
	tests/sdk/test_kills.py \
	tests/sdk/test_oldest_python.py \
	tests/sdk/test_typescript_client.py \
	tests/sdk/test_typescript_kills.py \
	tests/simulator/test_command.py \
	tests/simulator/test_exam.py \
	tests/simulator/test_exam_of_other_languages.py \
	tests/simulator/test_faults.py::test_the_page_is_accessible \
	tests/simulator/test_programs.py \
	tests/structure/test_processor_time.py \
	tests/structure/test_what_commands_load.py \
	tests/tasks \
	tests/telegram/test_announcing_at_once.py::test_many_moves_and_many_edits_end_with_the_present_state \
	tests/telegram/test_commands.py \
	tests/telegram/test_pressing.py \
	tests/telegram/test_replies.py \
	tests/telegram/test_trying_a_chat.py::test_the_button_saves_and_posts_in_the_chat_that_was_just_entered \
	tests/telegram/test_working_in_the_chat.py \
	tests/telemetry/test_no_secret_leaves.py
# Processor seconds of `make test` (tests/processor_time.py) on the slowest of the usual machines. CI
# fails when a run exceeds them by more than a tenth. A commit that raises the number says why.
TEST_BUDGET := 420
# Test folders that start no process besides PostgreSQL and Valkey.
FAST_TESTS := $(addprefix tests/,structure accounts catalogue contract idempotency orders topups wallets) \
	labs/mutants/test_mutants.py

CLEAN_TREE = test -z "$$(git status --porcelain)" || { echo "Commit or remove the changes first." >&2; exit 1; }
# npm writes versions in its own way: 1.2.1-dev.0.
WRITE_VERSION = sed -i -E '/^(version|VERSION) = /s/".*"/"$(1)"/' core/version.py pyproject.toml \
		sdk/python/pyproject.toml && \
	sed -i -E '1,10s/^( *"version": )".*"/\1"$(subst .dev0,-dev.0,$(1))"/' \
		sdk/typescript/package.json sdk/typescript/package-lock.json

export UV_PYTHON_DOWNLOADS := never
# With this variable set, every process would compile every module again, which takes long.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install install-dev run simulate exam servers test system-test interleavings upgrade-test mutants soak \
	odd-requests client-kills support-test check fast bench lint format openapi monitoring sdk texts lock \
	release audit

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/embedded.stamp ## create the virtual environment to run the service
install-dev: $(VENV)/dev.stamp ## create the virtual environment with the developers' tools

run: $(VENV)/embedded.stamp ## run the whole service with its own PostgreSQL and Valkey [PORT=8000]
	@exec $(RUN) -m embedded run

simulate: $(VENV)/embedded.stamp ## run a shop without real money, whose service fails on request [PORT=8100 SCENARIO=file]
	@exec $(EXEC) --fast -- $(RUN) -m simulator run --port=$(or $(PORT),8100) $(if $(SCENARIO),--scenario=$(SCENARIO))

exam: $(VENV)/dev.stamp ## judge a program that buys [PROGRAM="python shop.py" ARGS="--purchases=500"]
	@exec $(EXEC) --fast -- $(RUN) -m simulator exam $(ARGS) -- $(PROGRAM)

servers: $(VENV)/embedded.stamp ## run only PostgreSQL and Valkey, for manage.py in another terminal
	@exec $(RUN) -m embedded servers

test: $(VENV)/dev.stamp ## run the tests on real servers [ARGS="-k replay"]
	@exec $(EXEC) --fast -- $(RUN) -m pytest -n auto --dist worksteal --budget=$(TEST_BUDGET) \
		$(foreach test,$(SYSTEM_TESTS),$(if $(findstring ::,$(test)),--deselect,--ignore)=$(test)) $(ARGS)

system-test: $(VENV)/dev.stamp $(VENV)/release.stamp .tools/library.stamp .tools/store.stamp ## run the tests that `make test` leaves out: containers, kills, samples of labs
	@exec $(EXEC) --fast -- $(RUN) -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(SYSTEM_TESTS) $(ARGS)

interleavings: $(VENV)/dev.stamp ## run every interleaving and every kill [ARGS="-k takeover" LIMIT=1000]
	@exec $(EXEC) --fast -- env INTERLEAVINGS=$(or $(LIMIT),1000000000) LOG_LEVEL=CRITICAL $(RUN) -m pytest -q -s -n0 labs/interleavings $(ARGS)

upgrade-test: $(VENV)/dev.stamp ## run an earlier version and this code side by side for 60 seconds of load
	@exec $(EXEC) -- env UPGRADE_SECONDS=60 $(RUN) -m pytest -s -q labs/upgrade $(ARGS)

mutants: $(VENV)/dev.stamp ## remove each guard once; a test must fail; goes on after a stop [ARGS="'^wallets'"]
	@exec $(EXEC) --fast -- $(RUN) -m labs.mutants $(ARGS)

soak: $(VENV)/dev.stamp ## buy while everything is killed in turn [SOAK_VOUCHERS=1000000 SOAK_TOPUPS=100000 SOAK_MINUTES=600]
	@exec $(EXEC) --fast -- $(RUN) -m labs.soak --vouchers $(or $(SOAK_VOUCHERS),1000000) --topups $(or $(SOAK_TOPUPS),100000) --minutes $(or $(SOAK_MINUTES),600) --result soak.json $(ARGS)

odd-requests: $(VENV)/dev.stamp ## send odd requests to the API and judge the answers [COUNT=100000 SEED=7]
	@exec $(EXEC) --fast -- env ODD_REQUESTS=$(or $(COUNT),100000) LOG_LEVEL=CRITICAL $(RUN) -m pytest -s -q -n0 $(if $(SEED),--hypothesis-seed=$(SEED)) labs/odd_requests -k every_answer $(ARGS)

client-kills: $(VENV)/dev.stamp .tools/library.stamp ## buy with the client libraries, killed around any write of their journal [COUNT=10000 SEED=7]
	@exec $(EXEC) --fast -- env CLIENT_PURCHASES=$(or $(COUNT),10000) CLIENT_SEED=$(or $(SEED),7) $(RUN) -m pytest -q tests/sdk/test_kills.py tests/sdk/test_oldest_python.py tests/sdk/test_typescript_kills.py $(ARGS)

support-test: $(VENV)/dev.stamp ## test the other supported versions of Python, PostgreSQL, Redis and Valkey, as root
	@exec .ci/support

# The trap undoes both commits when a step fails. The tag is last, because it cannot fail half-way.
# The second commit begins the next version. It freezes the migrations of the release, and upgrades
# are tested from it.
release: $(VENV)/dev.stamp $(VENV)/release.stamp ## tag a version, and build its files [VERSION=1.2.0 CHECK=.ci/run]
	@echo "$(VERSION)" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || { echo "Name a version, such as VERSION=1.2.0." >&2; exit 1; }
	@! git rev-parse --quiet --verify refs/tags/v$(VERSION) || { echo "v$(VERSION) exists already." >&2; exit 1; }
	@ls changelog.d/+*.md >/dev/null
	@$(CLEAN_TREE)
	$(or $(CHECK),.ci/run)
	@$(CLEAN_TREE)
	@set -e; trap "git reset --quiet --hard $$(git rev-parse HEAD)" EXIT; mkdir -p dist/$(VERSION); \
	$(VENV)/bin/towncrier build --draft --version $(VERSION) >dist/$(VERSION)/notes.md; \
	$(VENV)/bin/towncrier build --yes --version $(VERSION) >/dev/null; \
	$(call WRITE_VERSION,$(VERSION)); \
	$(VENV)/bin/cyclonedx-py requirements --pyproject=pyproject.toml --mc-type=application \
		--output-reproducible --output-file=dist/$(VERSION)/components.cdx.json requirements/run.txt; \
	git commit --quiet --all --message "Release $(VERSION)"; \
	.ci/release-files $(VERSION) dist/$(VERSION); \
	git rev-parse HEAD >tests/upgrade_from.txt; \
	$(call WRITE_VERSION,$(shell echo $(VERSION) | awk -F. '{print $$1 "." $$2 "." $$3 + 1}').dev0); \
	git commit --quiet --all --message "Begin the version after $(VERSION)"; \
	git tag --annotate v$(VERSION) HEAD^ --file=dist/$(VERSION)/notes.md --cleanup=whitespace; \
	trap - EXIT
	@echo "Tagged v$(VERSION). Its notes, components, libraries, images and checksums are in dist/$(VERSION)."

audit: $(VENV)/release.stamp ## look up known vulnerabilities of the pinned packages; needs the internet
	@for list in run sentry tracing; do $(VENV)/bin/pip-audit --strict --disable-pip --require-hashes -r requirements/$$list.txt || exit 1; done

check: $(VENV)/dev.stamp ## check style, types, imports and the fast tests, before each commit
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint fast

fast: $(VENV)/dev.stamp
	@exec $(EXEC) --fast -- $(RUN) -m pytest -q -n 2 --dist loadfile $(FAST_TESTS)

bench: $(VENV)/dev.stamp ## run the benchmarks; requires wrk [ARGS="--quick"]
	@exec $(EXEC) -- env DJANGO_SETTINGS_MODULE=config.settings $(RUN) -m labs.bench $(or $(ARGS),--report docs/benchmarks.md)

lint: $(VENV)/dev.stamp ## check style, types, imports and the packages that they need
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy .
	$(RUN) $(VENV)/bin/lint-imports
	$(RUN) -m deptry .

format: $(VENV)/dev.stamp ## format the code
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

openapi: $(VENV)/dev.stamp ## write docs/openapi.yaml from the code
	$(EXEC) --fast -- $(RUN) manage.py spectacular --file docs/openapi.yaml --validate --fail-on-warn

monitoring: $(VENV)/dev.stamp ## write the alert rules and docs/operate/metrics.md from the code
	$(RUN) manage.py show_monitoring alerts > deploy/prometheus/alerts.yml
	$(RUN) manage.py show_monitoring document > docs/operate/metrics.md

sdk: $(VENV)/dev.stamp ## write the advice of the client libraries, and the collections
	$(RUN) -m sdk.write_advice
	$(RUN) -m sdk.write_collections

texts: $(VENV)/dev.stamp ## collect the texts of pages and emails for translation, and compile the translations
	$(RUN) -m tests.languages.collect

lock: $(UV_STAMP) ## write requirements/*.txt from pyproject.toml [ARGS=--upgrade]
	$(UV) pip compile --universal --generate-hashes pyproject.toml -o requirements/run.txt $(ARGS) --quiet
	$(UV) pip compile --universal --generate-hashes pyproject.toml --extra embedded -c requirements/run.txt -o requirements/embedded.txt $(ARGS) --quiet
	$(UV) pip compile --universal --generate-hashes pyproject.toml --extra embedded --extra sentry --extra tracing --group dev -c requirements/embedded.txt -o requirements/dev.txt $(ARGS) --quiet
	$(UV) pip compile --universal --generate-hashes pyproject.toml --extra sentry -c requirements/dev.txt -o requirements/sentry.txt $(ARGS) --quiet
	$(UV) pip compile --universal --generate-hashes pyproject.toml --extra tracing -c requirements/dev.txt -o requirements/tracing.txt $(ARGS) --quiet
	$(UV) pip compile --universal --generate-hashes --group release -c requirements/dev.txt -o requirements/release.txt $(ARGS) --quiet
	$(UV) pip compile --universal --generate-hashes --group store -o requirements/store.txt $(ARGS) --quiet
	$(UV) pip compile --python-version 3.9 --generate-hashes sdk/python/pyproject.toml -o requirements/library.txt $(ARGS) --quiet

# uv creates the environment without ensurepip, which is a separate package on Debian. If uv cannot
# install, pip tries, because pip reads package sources from settings that uv does not know.
$(VENV)/%.stamp: requirements/%.txt $(VENV)/pyvenv.cfg
	@echo "Installing $< into $(VENV)"
	@$(UV) pip install --quiet --python $(RUN) --require-hashes -r $< \
	|| $(PYTHON) -m pip --python $(RUN) install --quiet --require-hashes -r $<
	@touch $@

# The packages of the client library for its oldest Python.
.tools/library.stamp: requirements/library.txt | $(UV_STAMP)
	@echo "Installing $< into .tools/library"
	@rm -rf .tools/library
	@for_library="--target .tools/library --python-version 3.9 --only-binary :all: --require-hashes -r $<"; \
	$(UV) pip install --quiet $$for_library || $(PYTHON) -m pip install --quiet --no-deps $$for_library
	@touch $@

# The S3 server of a laboratory, with the packages that it needs.
.tools/store.stamp: requirements/store.txt | $(UV_STAMP)
	@echo "Installing $< into .tools/store"
	@$(UV) venv --quiet --clear .tools/store
	@$(UV) pip install --quiet --python .tools/store/bin/python --require-hashes -r $< \
	|| $(PYTHON) -m pip --python .tools/store/bin/python install --quiet --require-hashes -r $<
	@touch $@

$(VENV)/pyvenv.cfg: | $(UV_STAMP)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	@$(UV) venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)

$(UV_STAMP):
	@$(PYTHON) -m pip --version >/dev/null || { echo "pip is needed: apt install python3-pip" >&2; exit 1; }
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-warn-script-location --root-user-action=ignore --upgrade --target .tools uv==$(UV_VERSION)
	@touch $@

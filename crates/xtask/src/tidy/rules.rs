//! The table of rules: name, what it asks, why, and the function that looks.

use super::report::TidyReport;
use super::tree::Tree;
use super::{crates, documents, layout, names, places, reasons, rust};

/// One rule of the house.
pub(super) struct Rule {
    /// Its name, as printed with findings.
    pub(super) name: &'static str,
    /// What it asks.
    pub(super) asks: &'static str,
    /// Why, and how to put it right.
    pub(super) why: &'static str,
    /// Looks at everything and reports.
    pub(super) check: fn(&Tree, &mut TidyReport),
}

/// All rules, in the order they run.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "crate-arrows",
        asks: "a crate depends only on the crates below it",
        why: "ARCHITECTURE.md draws the arrows. Tests of hob have libhob built. A load generator that \
              shares the server's parser shares its mistakes, and what runs with privileges knows \
              no handler.",
        check: crates::arrows,
    },
    Rule {
        name: "crate-manifest",
        asks: "folder `x` is package `hob-x`, with the workspace's lints",
        why: "One name leads to code, package and docs. `[lints] workspace = true` is what denies \
              `unsafe` and asks for doc comments. The program is plain `hob`; `libhob` and `xtask` \
              keep their names.",
        check: crates::manifests,
    },
    Rule {
        name: "dependency-reason",
        asks: "every direct dependency has its line in ARCHITECTURE.md",
        why: "A dependency is a decision: what it saves, who keeps it, what it pulls in. The table \
              under `## Dependencies` names each one of [workspace.dependencies] in backticks, and \
              none that is gone.",
        check: crates::dependency_reasons,
    },
    Rule {
        name: "locked-packages",
        asks: "Cargo.lock holds at most 400 packages",
        why: "Everything locked is built, audited and shipped. Look at `cargo tree -d` and at default \
              features before asking for more.",
        check: crates::locked_packages,
    },
    Rule {
        name: "forbidden-name",
        asks: "no folder or file is called common, util, misc, helper, core, base, types or manager",
        why: "Such names say nothing about what is inside, so everything ends up there. Name the \
              thing.",
        check: layout::forbidden_names,
    },
    Rule {
        name: "five-places",
        asks: "every `handle/<x>/` has `crates/hob/tests/<x>.rs` and `docs/src/how-to/<x>.md`",
        why: "One word leads to a feature's code, keys, test and page. What has no test does not work; \
              what has no page is not there.",
        check: layout::five_places,
    },
    Rule {
        name: "handler-shape",
        asks: "every handler of the list has `config.rs`, `answer.rs` and `explain.rs`",
        why: "The list is `handlers!` in crates/trace/src/record.rs. Files of the same names everywhere: \
              who knows one handler finds his way in the next.",
        check: layout::handler_shape,
    },
    Rule {
        name: "handler-named",
        asks: "outside handle/ no code names a handler",
        why: "A new handler is a folder and a line of the list. Whoever has to know something of a \
              handler asks it: `handler.program()`, `kind.runs_program()`.",
        check: layout::handler_named,
    },
    Rule {
        name: "handlers-apart",
        asks: "a handler of programs knows no other one",
        why: "What they share stands in handle/script/, so that each can be read, changed and removed \
              alone. Only `warm` is `cgi` with processes from elsewhere, `remote` is `proxy` to \
              another hob, and each visit of `session` is `resident` with one worker.",
        check: layout::handlers_apart,
    },
    Rule {
        name: "type-name",
        asks: "at most two types of the workspace have one name",
        why: "Who reads `State` has to find out which of many is meant. Say what it is the state of: a \
              name says one thing, wherever it is read.",
        check: names::types_of_a_name,
    },
    Rule {
        name: "room-circle",
        asks: "no more than three rooms of a crate import each other in a circle",
        why: "A room that is used by what it uses cannot be read, tested or moved alone. Move what both \
              want to a room below them.",
        check: names::circles,
    },
    Rule {
        name: "example-shape",
        asks: "an example has README.md, hob.toml and expected.txt",
        why: "Every example is served and fetched by `make test`; expected.txt says what must come \
              back.",
        check: layout::examples,
    },
    Rule {
        name: "suite-shape",
        asks: "a folder of conformance/ has `run` and expected.txt",
        why: "`run` finds or installs the suite and ends with one count; expected.txt lists what is \
              known to fail, with a reason each.",
        check: layout::suites,
    },
    Rule {
        name: "fuzz-corpus",
        asks: "a fuzz target has its corpus, and fuzz/Cargo.toml names it",
        why: "The corpus is what a parser is known to have met; without one every run starts blind.",
        check: layout::fuzz_targets,
    },
    Rule {
        name: "shell-place",
        asks: "shell scripts live only in .ci/, packaging/, lang/shell/ and files called `check`",
        why: "The developers' tools are Rust in xtask, where they are typed and tested.",
        check: layout::shell_scripts,
    },
    Rule {
        name: "empty-file",
        asks: "no file is empty",
        why: "Nothing planned, nothing dead: the tree shows what works.",
        check: layout::empty_files,
    },
    Rule {
        name: "file-purpose",
        asks: "a Rust file begins with `//!`, saying what it is for",
        why: "Two to ten lines: what it is for, what it leaves to others, and the layout or state \
              machine it owns. Inner attributes may stand before it, and the line that says the \
              file is generated.",
        check: rust::purpose,
    },
    Rule {
        name: "contents-page",
        asks: "lib.rs and mod.rs have fewer than 150 lines",
        why: "They are contents pages: what this is, its parts, what is exported. Move logic into a \
              file with a name.",
        check: rust::contents_pages,
    },
    Rule {
        name: "file-length",
        asks: "a Rust file has fewer than 800 lines",
        why: "Aim for 300. Tables may be longer: list them in tidy/exceptions.rs with the reason.",
        check: rust::file_length,
    },
    Rule {
        name: "function-length",
        asks: "the body of a function has at most 70 lines",
        why: "Aim for 30. Decide high, work low: branching in the caller, plain work in the callee.",
        check: rust::function_length,
    },
    Rule {
        name: "line-width",
        asks: "a line of Rust has at most 100 columns",
        why: "rustfmt keeps code narrow and leaves comments alone. Lines that hold a string or an \
              address may be longer.",
        check: rust::line_width,
    },
    Rule {
        name: "unwrap",
        asks: "no `unwrap()` outside tests",
        why: "Nothing from the network, a script or a file may panic. `expect` only for what this \
              function just proved, with the proof as its text.",
        check: rust::unwrap,
    },
    Rule {
        name: "unfinished",
        asks: "no `todo!`, `unimplemented!` or `dbg!`",
        why: "What is not there is refused with words, or is not offered.",
        check: rust::unfinished,
    },
    Rule {
        name: "cfg-inside",
        asks: "no `cfg` inside a function",
        why: "Two whole versions behind one `mod`, or none. `cfg` may stand on a `mod` line.",
        check: rust::cfg_inside,
    },
    Rule {
        name: "test-ignored",
        asks: "no test is ignored",
        why: "A test that cannot run says why in one line and passes or counts as skipped; wrong \
              behaviour that is known is asserted as wrong.",
        check: rust::ignored,
    },
    Rule {
        name: "test-sleep",
        asks: "no test sleeps",
        why: "A sleep is too short on a slow machine and too long on all others. Wait for the event.",
        check: rust::sleep,
    },
    Rule {
        name: "unsafe-place",
        asks: "`unsafe` stands only in files that ARCHITECTURE.md names",
        why: "The list under `## Files with unsafe code` is what an auditor reads first. A file that \
              has no `unsafe` any more leaves the list.",
        check: places::unsafe_code,
    },
    Rule {
        name: "unsafe-forbid",
        asks: "a crate without a named file says `#![forbid(unsafe_code)]`",
        why: "`deny` in the workspace can be relaxed by any line; `forbid` cannot.",
        check: places::unsafe_forbidden,
    },
    Rule {
        name: "environment",
        asks: "arguments and environment are read only in crates/hob/src/args.rs",
        why: "Whoever reads the program's inputs finds them all in one table; everything else gets \
              them as values.",
        check: places::environment,
    },
    Rule {
        name: "listening",
        asks: "listening sockets are opened only in crates/http/src/listen/",
        why: "Backlog, inheritance over an upgrade and limits are decided in one place.",
        check: places::listening,
    },
    Rule {
        name: "children",
        asks: "processes are started only in crates/keeper/src/",
        why: "Descriptors, users and limits of a child are decided in one place.",
        check: places::children,
    },
    Rule {
        name: "config-reader",
        asks: "TOML is read only in crates/config/src/",
        why: "Strictness, positions and error messages are one piece of code.",
        check: places::config_reader,
    },
    Rule {
        name: "protocol-pure",
        asks: "protocol code reads no clock and opens no socket",
        why: "crates/http/src/fields_coding, h1, h2 and h3 take bytes and time and give bytes and \
              events, so that tests need neither network nor waiting. Only h3/quic/socket.rs sends \
              datagrams.",
        check: places::protocol_pure,
    },
    Rule {
        name: "todo-number",
        asks: "TODO stands only with an issue number",
        why: "Write `TODO(#12): what`. A wish without a number is never read again.",
        check: documents::todo_numbers,
    },
    Rule {
        name: "generated",
        asks: "generated files say so on line 1, and only they",
        why: "`cargo xtask generate` writes the files of its table; `generate --check` compares them. \
              Nobody should mend one by hand.",
        check: documents::generated,
    },
    Rule {
        name: "architecture-length",
        asks: "ARCHITECTURE.md has at most 300 lines",
        why: "A map that takes an hour to read is not a map.",
        check: documents::architecture_length,
    },
    Rule {
        name: "machine-path",
        asks: "no text holds a path of one developer's machine",
        why: "What only exists on one machine works only there.",
        check: documents::machine_paths,
    },
    Rule {
        name: "doc-links",
        asks: "links between documents lead somewhere, and every page is in SUMMARY.md",
        why: "A page nobody can reach is not documentation.",
        check: documents::links,
    },
    Rule {
        name: "reason-told",
        asks: "every reason why a program's answer failed stands in docs/src/how-to/502.md",
        why: "Who meets a reason in a log searches for it there. Put it into the table of its status, \
              word for word, with what to do.",
        check: reasons::told,
    },
];

/// All rules, one a line.
pub(super) fn list() -> String {
    RULES
        .iter()
        .map(|rule| format!("{:<20} {}\n", rule.name, rule.asks))
        .collect()
}

/// One rule in full.
pub(super) fn explain(name: &str) -> Result<String, String> {
    let rule = RULES
        .iter()
        .find(|rule| rule.name == name)
        .ok_or_else(|| format!("there is no rule {name:?}; `tidy --explain` lists them"))?;
    Ok(format!("{}: {}.\n\n{}\n", rule.name, rule.asks, rule.why))
}

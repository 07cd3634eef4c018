//! The developers' tool: `cargo xtask COMMAND`. `make` calls it, and so can you.
//!
//! One file per command. It knows nothing of the other crates and needs little of other people's,
//! so that it is built in seconds before anything else; it runs what was built and reads what is
//! written.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod calls;
mod ci;
mod conformance;
mod dependencies;
mod dist;
mod examples;
mod fuzz;
mod generate;
mod header;
mod lang;
mod native;
mod over;
mod pages;
mod regressions;
mod run;
mod samples;
mod served;
mod shapes;
mod tally;
mod teapot;
mod test;
mod tidy;
mod welcome;

/// A command: its name, what follows it, what it does, and the function that does it.
struct CommandSpec {
    name: &'static str,
    arguments: &'static str,
    what: &'static str,
    run: fn(&Path, &[String]) -> Result<bool, String>,
}

const COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "tidy",
        arguments: "[--explain RULE]",
        what: "check the rules of the house that a program can check",
        run: tidy::command,
    },
    CommandSpec {
        name: "dependencies",
        arguments: "",
        what: "check licences, versions and sources of other people's packages",
        run: dependencies::command,
    },
    CommandSpec {
        name: "generate",
        arguments: "[--check]",
        what: "write the generated files, or say which are out of date",
        run: generate::command,
    },
    CommandSpec {
        name: "examples",
        arguments: "",
        what: "serve every example and fetch what its expected.txt lists",
        run: examples::command,
    },
    CommandSpec {
        name: "pages",
        arguments: "",
        what: "check the admin pages, and try them in a browser",
        run: pages::command,
    },
    CommandSpec {
        name: "samples",
        arguments: "",
        what: "check every config that the documents show",
        run: samples::command,
    },
    CommandSpec {
        name: "conformance",
        arguments: "[--skip-missing] [JUDGE]...",
        what: "have other people's programs judge the welcome example",
        run: conformance::command,
    },
    CommandSpec {
        name: "test",
        arguments: "",
        what: "run the tests of the workspace, several programs at once",
        run: test::command,
    },
    CommandSpec {
        name: "over",
        arguments: "tls|h2|h3|proxy|proxy-h2 [NAME]...",
        what: "run the tests of features again, spoken in another protocol",
        run: over::command,
    },
    CommandSpec {
        name: "regressions",
        arguments: "--before PROGRAM",
        what: "show that the tests of mended faults fail with the program of before",
        run: regressions::command,
    },
    CommandSpec {
        name: "teapot",
        arguments: "",
        what: "show that a new handler is a folder and a line of the list",
        run: teapot::command,
    },
    CommandSpec {
        name: "fuzz",
        arguments: "[SECONDS]",
        what: "run each fuzz target for a while (60 seconds)",
        run: fuzz::command,
    },
    CommandSpec {
        name: "native",
        arguments: "[--release]",
        what: "build libhob, the native parts of other languages, and programs in C",
        run: native::command,
    },
    CommandSpec {
        name: "lang",
        arguments: "[LANGUAGE]...",
        what: "build and test the folders of lang/, each by its own check",
        run: lang::command,
    },
    CommandSpec {
        name: "welcome",
        arguments: "",
        what: "make what examples/welcome does not commit: large files, a C program",
        run: welcome::command,
    },
    CommandSpec {
        name: "tally",
        arguments: "FILE...",
        what: "add up the results in logs: N passed, M failed, K skipped",
        run: tally::command,
    },
    CommandSpec {
        name: "dist",
        arguments: "[--target TRIPLE] [--twice] | --check",
        what: "make packages, tarball and images in target/dist; or try a package of this build",
        run: dist::command,
    },
    CommandSpec {
        name: "ci",
        arguments: "",
        what: "everything `make test` checks, ending with one count",
        run: ci::command,
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        print_usage(&name);
        return ExitCode::from(2);
    };
    match (command.run)(&repository(), &rest) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::from(2)
        }
    }
}

fn print_usage(name: &str) {
    if !name.is_empty() {
        eprintln!("xtask: there is no command {name:?}");
    }
    eprintln!("usage: cargo xtask COMMAND\n");
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.arguments);
        eprintln!("  {call:<24} {}", command.what);
    }
}

/// The top folder of the repository: two above this crate.
fn repository() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder
        .ancestors()
        .nth(2)
        .unwrap_or(crate_folder)
        .to_path_buf()
}

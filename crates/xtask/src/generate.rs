//! `cargo xtask generate`: the files that are made from the program, and whether they still match.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::calls;
use crate::header;
use crate::run;
use crate::shapes;
use crate::tally::TestTally;

/// A generated file: where it is, and what it is made from.
pub(crate) struct Generated {
    pub(crate) path: &'static str,
    source: GenerationSource,
    /// The start and the end of a comment in that kind of file.
    comment: (&'static str, &'static str),
}

enum GenerationSource {
    /// What `hob` prints when it is called so.
    Program(&'static [&'static str]),
    /// The JSON schema that `hob` prints when it is called so, and what becomes of it.
    Schema(&'static [&'static str], fn(&str) -> Result<String, String>),
    /// Rust declarations for C, and how they become C.
    Declarations(&'static str, fn(&str) -> Result<String, String>),
    /// A table of this tool, held against the sources it speaks of.
    Table(&'static str, fn(&Path) -> Result<String, String>),
}

/// Every generated file.
pub(crate) const FILES: &[Generated] = &[
    Generated {
        path: "docs/src/reference/config.md",
        source: GenerationSource::Program(&["check", "--reference"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/words.md",
        source: GenerationSource::Program(&["check", "--words"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/variables.md",
        source: GenerationSource::Program(&["check", "--variables"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/metrics.md",
        source: GenerationSource::Program(&["check", "--metrics"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/admin.md",
        source: GenerationSource::Program(&["check", "--endpoints"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/status.md",
        source: GenerationSource::Program(&["status", "--reference"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/bench.md",
        source: GenerationSource::Program(&["bench", "--reference"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/compare.md",
        source: GenerationSource::Program(&["compare", "--reference"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/servers.md",
        source: GenerationSource::Program(&["servers", "--reference"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/cost.md",
        source: GenerationSource::Program(&["cost", "--reference"]),
        comment: ("<!-- ", " -->"),
    },
    Generated {
        path: "docs/src/reference/macro-page.tmLanguage.json",
        source: GenerationSource::Program(&["page", "check", "--grammar"]),
        comment: ("{ \"comment\": \"", "\","),
    },
    Generated {
        path: "ui/src/api/answers.ts",
        source: GenerationSource::Schema(&["check", "--answers"], shapes::made_from),
        comment: ("// ", ""),
    },
    Generated {
        path: "crates/libhob/include/hob.h",
        source: GenerationSource::Declarations("crates/libhob/src/abi.rs", header::made_from),
        comment: ("/* ", " */"),
    },
    Generated {
        path: "lang/calls.md",
        source: GenerationSource::Table("crates/xtask/src/calls.rs", calls::page),
        comment: ("<!-- ", " -->"),
    },
];

/// `generate` writes them, `generate --check` says which differ.
pub(crate) fn command(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let is_check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("usage: cargo xtask generate [--check]".to_string()),
    };
    run::build(root)?;
    let mut sum = TestTally::default();
    for file in FILES {
        sum += if is_check {
            check(root, file)?
        } else {
            write(root, file)?
        };
    }
    println!("{sum}");
    Ok(sum.failed == 0)
}

fn write(root: &Path, file: &Generated) -> Result<TestTally, String> {
    let Some(text) = wanted(root, file)? else {
        return Ok(TestTally::SKIPPED);
    };
    let path = root.join(file.path);
    run::create(&path)?;
    fs::write(&path, text).map_err(|error| format!("writing {}: {error}", file.path))?;
    println!("{}: written", file.path);
    Ok(TestTally::PASSED)
}

fn check(root: &Path, file: &Generated) -> Result<TestTally, String> {
    let Some(text) = wanted(root, file)? else {
        return Ok(TestTally::SKIPPED);
    };
    let is_same = fs::read_to_string(root.join(file.path)).is_ok_and(|found| found == text);
    if !is_same {
        println!("{}:1: out of date; run `cargo xtask generate`", file.path);
    }
    Ok(TestTally::of_check(is_same))
}

/// What the file should hold; nothing when the program cannot print it.
fn wanted(root: &Path, file: &Generated) -> Result<Option<String>, String> {
    let arguments = match file.source {
        GenerationSource::Program(arguments) | GenerationSource::Schema(arguments, _) => arguments,
        GenerationSource::Declarations(path, make) => {
            let text = fs::read_to_string(root.join(path));
            let text = text.map_err(|error| format!("reading {path}: {error}"))?;
            return Ok(Some(with_notice(file, path, &make(&text)?)));
        }
        GenerationSource::Table(path, make) => {
            return Ok(Some(with_notice(file, path, &make(root)?)));
        }
    };
    let call = format!("hob {}", arguments.join(" "));
    let printed = run::captured(Command::new(run::built("hob")?).args(arguments));
    match printed {
        Ok(text) if !text.trim().is_empty() => {
            let text = match file.source {
                GenerationSource::Schema(_, make) => make(&text)?,
                _ => text,
            };
            Ok(Some(with_notice(file, &call, &text)))
        }
        Ok(_) => {
            println!("{}: skipped, `{call}` prints nothing", file.path);
            Ok(None)
        }
        Err(error) => {
            println!("{}: skipped, {error}", file.path);
            Ok(None)
        }
    }
}

/// The text under the line that says where it comes from, which replaces a line of that kind.
fn with_notice(file: &Generated, origin: &str, text: &str) -> String {
    let (start, end) = file.comment;
    let body = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with(&format!("{start}Generated")) => rest,
        _ => text,
    };
    format!("{start}Generated by `cargo xtask generate` from `{origin}`; do not edit.{end}\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_stands_once_on_the_first_line() {
        let notice =
            "<!-- Generated by `cargo xtask generate` from `hob x`; do not edit. -->\n# Title\n";
        assert_eq!(with_notice(&FILES[0], "hob x", "# Title\n"), notice);
        let printed = "<!-- Generated from a table -->\n# Title\n";
        assert_eq!(with_notice(&FILES[0], "hob x", printed), notice);
    }
}

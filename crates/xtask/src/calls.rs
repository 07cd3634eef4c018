//! What programs can call, by language, side by side: one table, held against the sources of every
//! language, both ways. `cargo xtask generate` writes `lang/calls.md` from it.

use std::fs;
use std::path::Path;

/// What programs want to do, and the names for it in C, Python, Perl and the shell. Names of one
/// cell are separated by spaces; an empty one has no name for it.
const CALLS: &[(&str, [&str; 4])] = &[
    (
        "take the next request",
        ["hob_accept", "hob.requests", "Hob->accept", "hob_accept"],
    ),
    (
        "wait for one only so long, or in an event loop",
        ["hob_accept_within hob_fd hob_look", "", "", ""],
    ),
    (
        "know which of several requests something has come for",
        ["hob_changed hob_number", "", "", ""],
    ),
    ("connect, and leave", ["hob_connect hob_close", "", "", ""]),
    (
        "was this started by a server?",
        ["hob_carrier", "", "Hob->is_resident", ""],
    ),
    (
        "how many requests come at a time",
        ["hob_concurrency", "hob.concurrency", "", ""],
    ),
    (
        "is the server about to end this worker?",
        ["hob_is_draining", "", "", ""],
    ),
    (
        "seconds this worker may be idle",
        ["hob_set_lifetime", "hob.lifetime", "Hob->lifetime", ""],
    ),
    (
        "variables",
        [
            "hob_variable hob_indexed hob_next_variable hob_variables",
            "request.environ",
            "$request->env",
            "",
        ],
    ),
    (
        "the usual ones",
        [
            "",
            "request.method request.path request.query",
            "$request->method $request->path $request->query",
            "",
        ],
    ),
    (
        "fields of the request",
        ["", "request.headers", "$request->field", ""],
    ),
    (
        "the body's length",
        [
            "hob_content_length",
            "request.length",
            "$request->content_length",
            "",
        ],
    ),
    (
        "the body",
        [
            "hob_read hob_read_within",
            "request.body",
            "$request->read $request->body",
            "hob_body",
        ],
    ),
    (
        "answer at once",
        ["", "request.respond", "$request->respond", ""],
    ),
    (
        "begin an answer: status and fields",
        [
            "hob_status hob_header hob_head",
            "request.start",
            "$request->start",
            "",
        ],
    ),
    (
        "write a part of the body",
        [
            "hob_write hob_write_some",
            "request.write",
            "$request->write",
            "",
        ],
    ),
    (
        "write it without a copy",
        ["hob_space hob_advance", "", "", ""],
    ),
    ("send a file", ["hob_send_file", "", "", ""]),
    (
        "send what was written so far",
        ["hob_flush", "request.flush", "", ""],
    ),
    (
        "end the answer",
        [
            "hob_finish",
            "request.finish",
            "$request->finish",
            "hob_finish",
        ],
    ),
    (
        "fields after the body",
        ["hob_trailer", "request.finish", "$request->finish", ""],
    ),
    (
        "an informational answer",
        ["hob_interim", "request.inform", "$request->info", ""],
    ),
    (
        "raw bytes both ways (a tunnel)",
        ["hob_tunnel hob_half_close", "", "", ""],
    ),
    (
        "give up on a request",
        ["hob_fail", "request.fail", "$request->fail", ""],
    ),
    (
        "has the client left?",
        [
            "hob_is_cancelled",
            "request.is_cancelled",
            "$request->is_canceled",
            "",
        ],
    ),
    (
        "is the answer whole?",
        ["", "request.is_finished", "$request->is_finished", ""],
    ),
    (
        "a line in the log",
        [
            "hob_log",
            "request.log",
            "$request->log Hob->log",
            "hob_tell",
        ],
    ),
    (
        "a line in the request's trace",
        ["hob_trace", "request.trace", "$request->trace", "hob_tell"],
    ),
    (
        "seconds this request may take",
        [
            "hob_set_timeout",
            "request.timeout",
            "$request->timeout",
            "hob_tell",
        ],
    ),
    (
        "the file a path stands for",
        [
            "hob_map_path",
            "request.map_path",
            "$request->map_path",
            "hob_callout",
        ],
    ),
    (
        "ask the server anything",
        [
            "hob_callout",
            "request.callout request.noop",
            "$request->callout",
            "hob_callout",
        ],
    ),
    (
        "finish what was left unfinished, as the next request does",
        ["", "request.leave", "", ""],
    ),
    (
        "what a code means; the version",
        ["hob_explain hob_version", "", "", ""],
    ),
];

/// A language: its name, and where what it offers is defined.
struct LanguageBinding {
    name: &'static str,
    files: &'static [&'static str],
    /// The names that such a file defines for programs.
    defined: fn(&str) -> Vec<String>,
}

const LANGUAGES: [LanguageBinding; 4] = [
    LanguageBinding {
        name: "C",
        files: &["crates/libhob/include/hob.h"],
        defined: of_header,
    },
    LanguageBinding {
        name: "Python",
        files: &["lang/python/src/hob/loop.py"],
        defined: of_python,
    },
    LanguageBinding {
        name: "Perl",
        files: &["lang/perl/lib/Hob.pm", "lang/perl/lib/Hob/Loop.pm"],
        defined: of_perl,
    },
    LanguageBinding {
        name: "shell",
        files: &["lang/shell/hob.sh"],
        defined: of_shell,
    },
];

const INTRODUCTION: &str = "\
# Calls, by language

What a program of each language calls when it has a loop of its own. Interfaces that others have
defined (WSGI, ASGI, PSGI, CGI) are as they are defined. In a shell the variables are the
environment, and the answer is what is printed. Each language's own page says what its calls take
and give back.
";

/// The page; or which name is missing where.
pub(crate) fn page(root: &Path) -> Result<String, String> {
    for (at, language) in LANGUAGES.iter().enumerate() {
        let mut defined = Vec::new();
        for file in language.files {
            let text = fs::read_to_string(root.join(file));
            let text = text.map_err(|error| format!("reading {file}: {error}"))?;
            defined.extend((language.defined)(&text));
        }
        compare(at, language, &defined)?;
    }
    let mut page = format!("{INTRODUCTION}\n| |");
    for language in &LANGUAGES {
        page += &format!(" {} |", language.name);
    }
    page += "\n| --- |";
    page += &" --- |".repeat(LANGUAGES.len());
    for (what, names) in CALLS {
        page += &format!("\n| {what} |");
        for cell in names {
            let quoted: Vec<String> = cell.split(' ').map(|name| format!("`{name}`")).collect();
            page += &match cell.is_empty() {
                true => " |".to_string(),
                false => format!(" {} |", quoted.join(", ")),
            };
        }
    }
    page.push('\n');
    Ok(page)
}

/// Every name of the table is defined, and everything that is defined is in the table.
fn compare(at: usize, language: &LanguageBinding, defined: &[String]) -> Result<(), String> {
    let listed: Vec<&str> = CALLS
        .iter()
        .flat_map(|(_, names)| names[at].split_whitespace())
        // Of what it is called is another matter.
        .map(|name| name.rsplit(['.', '>']).next().unwrap_or(name))
        .collect();
    for name in &listed {
        if !defined.iter().any(|known| known == name) {
            return Err(format!(
                "{:?} define no {name}; see xtask/src/calls.rs",
                language.files
            ));
        }
    }
    match defined.iter().find(|name| !listed.contains(&name.as_str())) {
        Some(name) => Err(format!(
            "{:?} define {name}, which has no line in xtask/src/calls.rs",
            language.files
        )),
        None => Ok(()),
    }
}

/// `int hob_accept(hob *server, ...`.
fn of_header(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '#', '}']));
    let names = lines.filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    names.map(str::to_string).collect()
}

/// Functions of the module and methods of `Request`, without those that begin with `_`.
fn of_python(text: &str) -> Vec<String> {
    let module = "connection variable_of lines_of as_bytes";
    let mut names = Vec::new();
    let mut is_request = false;
    for line in text.lines() {
        if line.starts_with("class ") {
            is_request = line.starts_with("class Request");
        }
        let Some((indent, rest)) = line.split_once("def ") else {
            continue;
        };
        let name = rest.split('(').next().unwrap_or_default();
        let is_seen = indent.is_empty() && !module.split(' ').any(|own| own == name)
            || indent == "    " && is_request;
        if is_seen && !name.starts_with('_') {
            names.push(name.to_string());
        }
    }
    names
}

/// Methods of the first package of the file.
fn of_perl(text: &str) -> Vec<String> {
    let own = text.split("\npackage ").next().unwrap_or(text);
    let names = own
        .lines()
        .filter_map(|line| line.strip_prefix("sub ")?.split([' ', '{']).next());
    let names = names.filter(|name| !name.starts_with('_') && !["source", "new"].contains(name));
    names.map(str::to_string).collect()
}

fn of_shell(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_suffix("() {"));
    names.map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_its_line_is_missed() {
        let mut defined: Vec<String> = CALLS
            .iter()
            .flat_map(|(_, names)| names[3].split_whitespace().map(str::to_string))
            .collect();
        assert_eq!(compare(3, &LANGUAGES[3], &defined), Ok(()));
        defined.push("hob_new".to_string());
        let error = compare(3, &LANGUAGES[3], &defined).unwrap_err();
        assert!(error.contains("hob_new, which has no line"), "{error}");
    }

    #[test]
    fn a_name_that_nothing_defines_is_told() {
        let error = compare(0, &LANGUAGES[0], &[]).unwrap_err();
        assert!(error.contains("define no hob_accept"), "{error}");
    }

    #[test]
    fn names_are_found_in_each_language() {
        assert_eq!(
            of_header("int hob_a(hob *x);\nconst char *hob_b(\n    int y);\n"),
            ["hob_a", "hob_b"]
        );
        let python = "def one() -> x:\nclass Request:\n    def two(self):\n    def _three(self):\n\
                      class Body:\n    def four(self):\n";
        assert_eq!(of_python(python), ["one", "two"]);
        assert_eq!(
            of_perl("sub new {\nsub five { 1 }\nsub _six {\npackage X;\nsub seven {"),
            ["five"]
        );
        assert_eq!(of_shell("hob_x() {\n"), ["hob_x"]);
    }
}

//! The built-in echo: programs that answer with the body they were sent, in each language and for
//! each way of running there is.

use std::path::{Path, PathBuf};

use crate::elf;
use crate::error::CostError;
use crate::limits::ECHO_BYTES;
use crate::load::MeasuredRequest;
use crate::private::TemporaryFolder;
use crate::script::{ScriptLanguage, found};

const PYTHON: &str = r#"import os, sys
body = sys.stdin.buffer.read(int(os.environ.get("CONTENT_LENGTH") or 0))
sys.stdout.buffer.write(b"Content-Type: text/plain\n\n" + body)
"#;

const PYTHON_LOOP: &str = r#"import hob
for request in hob.requests():
    request.respond(200, {"Content-Type": "text/plain"}, request.body.read())
"#;

const PERL: &str = r#"binmode STDIN; binmode STDOUT;
read STDIN, my $body, $ENV{CONTENT_LENGTH} || 0;
print "Content-Type: text/plain\n\n", $body;
"#;

const PERL_LOOP: &str = r#"use strict; use warnings; use Hob;
while (my $request = Hob->accept) {
    my $handle = $request->body;
    my $body = do { local $/; <$handle> };
    $request->respond(200, ['Content-Type' => 'text/plain'], $body);
}
"#;

const SHELL: &str = r#"length=${CONTENT_LENGTH:-0}
[ "$length" -eq 0 ] || READ
printf 'Content-Type: text/plain\n\n%s\n' "$body"
"#;

const SHELL_LINES: &str = r#"exec 3<"$CGIPLUSIN"
while IFS= read -r line <&3; do
    [ "$line" = '!' ] || continue
    length=0
    while IFS= read -r line <&3 && [ -n "$line" ]; do
        case $line in CONTENT_LENGTH=*) length=${line#*=} ;; esac
    done
    [ "${length:-0}" -eq 0 ] || READ
    printf 'Content-Type: text/plain\n\n%s\n%s\n' "$body" "$CGIPLUSEOF"
done
"#;

/// How a shell reads a body: a line by itself, anything else with a program.
const READ_LINE: &str = "IFS= read -r body";
const READ_ANY: &str = "body=$(head -c \"$length\")";

/// Which echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EchoKind {
    /// A CGI program.
    Cgi,
    /// A loop over requests.
    Loop,
    /// A loop over lines.
    Lines,
}

/// What the echo is sent: a line, because a shell reads lines.
pub(crate) fn asked() -> MeasuredRequest {
    let mut body = vec![b'x'; ECHO_BYTES - 1];
    body.push(b'\n');
    MeasuredRequest {
        method: "POST".to_owned(),
        fields: vec![("Content-Type".to_owned(), "text/plain".to_owned())],
        query: None,
        body: Some(body),
        is_insecure: false,
    }
}

/// Writes an echo into the folder; nothing where its language is not installed, or there is none.
pub(crate) fn write(
    folder: &TemporaryFolder,
    language: ScriptLanguage,
    kind: EchoKind,
    path: &str,
    asked: &MeasuredRequest,
) -> Result<Option<PathBuf>, CostError> {
    let body = asked.body.as_deref().unwrap_or_default();
    let is_line = body.iter().position(|byte| *byte == b'\n') == body.len().checked_sub(1);
    let read = if is_line { READ_LINE } else { READ_ANY };
    let (interpreter, text, name) = match (language, kind) {
        (ScriptLanguage::Compiled, EchoKind::Cgi) if elf::IS_OURS_POSSIBLE => {
            return folder.program("echo", &elf::echo(None)).map(Some);
        }
        (ScriptLanguage::Python, EchoKind::Cgi) => ("python3", PYTHON, "echo.py"),
        (ScriptLanguage::Python, EchoKind::Loop) => ("python3", PYTHON_LOOP, "echo_loop.py"),
        (ScriptLanguage::Perl, EchoKind::Cgi) => ("perl", PERL, "echo.pl"),
        (ScriptLanguage::Perl, EchoKind::Loop) => ("perl", PERL_LOOP, "echo_loop.pl"),
        (ScriptLanguage::Shell, EchoKind::Cgi) => ("sh", SHELL, "echo.sh"),
        (ScriptLanguage::Shell, EchoKind::Lines) => ("sh", SHELL_LINES, "echo_lines.sh"),
        _ => return Ok(None),
    };
    let Some(interpreter) = found(interpreter, path) else {
        return Ok(None);
    };
    let text = format!(
        "#!{}\n{}",
        interpreter.display(),
        text.replace("READ\n", &format!("{read}\n"))
    );
    folder.program(name, text.as_bytes()).map(Some)
}

/// The same script with the same first line that does nothing.
pub(crate) fn write_nothing(
    folder: &TemporaryFolder,
    language: ScriptLanguage,
    first_line: Option<&str>,
    path: &Path,
) -> Result<Option<PathBuf>, CostError> {
    let Some(text) = language.nothing() else {
        return Ok(None);
    };
    let first_line = first_line.map_or(String::new(), |line| format!("#!{line}\n"));
    let ending = path.extension().and_then(|ending| ending.to_str());
    let name = format!("nothing.{}", ending.unwrap_or("cgi"));
    let text = format!("{first_line}{text}");
    folder.program(&name, text.as_bytes()).map(Some)
}

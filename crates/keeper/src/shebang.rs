//! The first line of a script, as the kernel reads it: who is to run it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a first line that are looked at; the kernel takes as many.
pub const LINE_BYTES_MAX: usize = 256;

/// What the first line of a script says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shebang<'a> {
    /// Who is to run it.
    pub interpreter: Interpreter<'a>,
    /// The interpreter is given options: such a script is not forked, as a warmed interpreter has
    /// begun without them. Perl's `-w` alone can be set later.
    pub has_options: bool,
}

/// An interpreter as a first line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter<'a> {
    /// By its path.
    Path(&'a [u8]),
    /// One that `env` looks for.
    Name(&'a [u8]),
}

/// What the first line of a file says, if it is that of a script.
pub fn shebang(begin: &[u8]) -> Option<Shebang<'_>> {
    let begin = &begin[..begin.len().min(LINE_BYTES_MAX)];
    let line = begin.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
        .filter(|word| !word.is_empty());
    let path = words.next().filter(|path| path.starts_with(b"/"))?;
    let word = match file_name(path) {
        // Options of `env`, and variables it sets, come before the name.
        b"env" => words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?,
        _ => path,
    };
    let is_perl = file_name(word).starts_with(b"perl");
    Some(Shebang {
        interpreter: match word.starts_with(b"/") {
            true => Interpreter::Path(word),
            false => Interpreter::Name(word),
        },
        has_options: words.any(|word| !(is_perl && word == b"-w")),
    })
}

/// What is wrong with the line that names a script's interpreter: who is named is not there, as
/// `is_there` has it.
pub fn line_fault(begin: &[u8], is_there: impl Fn(&Path) -> bool) -> Option<String> {
    let begin = &begin[..begin.len().min(LINE_BYTES_MAX)];
    let line = begin.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let (line, has_return) = match line.strip_suffix(b"\r") {
        Some(line) => (line, true),
        None => (line, false),
    };
    let name = line.trim_ascii();
    let name = name.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    let shown = String::from_utf8_lossy(name);
    if has_return {
        return Some(format!(
            "its first line ends with CR LF, so its interpreter is \"{shown}\\r\"; save it with LF \
             alone"
        ));
    }
    (!is_there(Path::new(OsStr::from_bytes(name))))
        .then(|| format!("there is no interpreter {shown:?}, which its first line names"))
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_name_an_interpreter_or_nobody() {
        let said = |interpreter, has_options| {
            Some(Shebang {
                interpreter,
                has_options,
            })
        };
        let path = |text: &'static str| Interpreter::Path(text.as_bytes());
        let name = |text: &'static str| Interpreter::Name(text.as_bytes());
        for (begin, expected) in [
            ("#!/bin/sh\necho", said(path("/bin/sh"), false)),
            (
                "#! /usr/bin/perl -w\r\n",
                said(path("/usr/bin/perl"), false),
            ),
            ("#!/usr/bin/perl -T\n", said(path("/usr/bin/perl"), true)),
            ("#!/usr/bin/python3", said(path("/usr/bin/python3"), false)),
            ("#! /bin/python3 \r\n", said(path("/bin/python3"), false)),
            ("#!/bin/python3 -w\n", said(path("/bin/python3"), true)),
            ("#!/usr/bin/env python3\n", said(name("python3"), false)),
            (
                "#!/usr/bin/env -S LANG=C python3 -u\n",
                said(name("python3"), true),
            ),
            ("#!/usr/bin/env /opt/x\n", said(path("/opt/x"), false)),
            ("#!/usr/bin/env\n", None),
            ("#!\n/bin/sh", None),
            ("#!python3\n", None),
            ("# !/bin/sh", None),
            ("\x7fELF\x02\x01", None),
            ("", None),
        ] {
            assert_eq!(shebang(begin.as_bytes()), expected, "{begin:?}");
        }
        let long = [b"#!/".as_slice(), &[b'a'; 1000]].concat();
        let Some(Interpreter::Path(path)) = shebang(&long).map(|said| said.interpreter) else {
            panic!("a long line");
        };
        assert_eq!(path.len(), LINE_BYTES_MAX - 2, "as the kernel cuts it");
    }
}

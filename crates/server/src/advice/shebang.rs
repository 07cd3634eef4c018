//! The first line of a script, as the kernel reads it: who is to run it.

/// Bytes of a first line that are looked at; the kernel takes as many.
pub const LINE_BYTES_MAX: usize = 256;

/// What the first line of a script names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shebang<'a> {
    /// An interpreter by its path.
    Path(&'a [u8]),
    /// One that `env` looks for.
    Name(&'a [u8]),
}

/// What the first line of a file names, if it is that of a script.
pub fn shebang(begin: &[u8]) -> Option<Shebang<'_>> {
    let begin = &begin[..begin.len().min(LINE_BYTES_MAX)];
    let line = begin.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line
        .split(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
        .filter(|word| !word.is_empty());
    let path = words.next().filter(|path| path.starts_with(b"/"))?;
    if path.rsplit(|byte| *byte == b'/').next() != Some(b"env") {
        return Some(Shebang::Path(path));
    }
    // Options of `env`, and variables it sets, come before the name.
    let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
    Some(match name.starts_with(b"/") {
        true => Shebang::Path(name),
        false => Shebang::Name(name),
    })
}

/// The first line gives its interpreter options of its own: such a script is not forked, as a
/// warmed interpreter has begun without them. Perl's `-w` alone can be set later.
pub fn has_options(begin: &[u8]) -> bool {
    let begin = &begin[..begin.len().min(LINE_BYTES_MAX)];
    let line = begin
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let mut words = line.split(is_space).filter(|word| !word.is_empty());
    let is_interpreter = |word: &&[u8]| {
        let name = super::runner::file_name(word);
        name != b"env" && !word.starts_with(b"-") && !word.contains(&b'=') && *word != b"#!"
    };
    let interpreter = words.find(is_interpreter).unwrap_or_default();
    let is_perl = super::runner::file_name(interpreter).starts_with(b"perl");
    words.any(|word| !(is_perl && word == b"-w"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_an_interpreter_are_seen() {
        for (begin, expected) in [
            ("#!/usr/bin/python3\nimport os", false),
            ("#! /usr/bin/python3 \r\n", false),
            ("#!/usr/bin/python3 -u\n", true),
            ("#!/usr/bin/perl -w\n", false),
            ("#!/usr/bin/perl -T\n", true),
            ("#!/usr/bin/env python3\n", false),
            ("#!/usr/bin/env -S LANG=C python3 -u\n", true),
            ("", false),
        ] {
            assert_eq!(has_options(begin.as_bytes()), expected, "{begin:?}");
        }
    }

    #[test]
    fn first_lines_name_an_interpreter_or_nobody() {
        let path = |text: &'static str| Some(Shebang::Path(text.as_bytes()));
        let name = |text: &'static str| Some(Shebang::Name(text.as_bytes()));
        for (begin, expected) in [
            ("#!/bin/sh\necho", path("/bin/sh")),
            ("#! /usr/bin/perl -w\r\n", path("/usr/bin/perl")),
            ("#!/usr/bin/python3", path("/usr/bin/python3")),
            ("#!/usr/bin/env python3\n", name("python3")),
            ("#!/usr/bin/env -S LANG=C python3 -u\n", name("python3")),
            ("#!/usr/bin/env /opt/x\n", path("/opt/x")),
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
        let Some(Shebang::Path(path)) = shebang(&long) else {
            panic!("a long line");
        };
        assert_eq!(path.len(), LINE_BYTES_MAX - 2, "as the kernel cuts it");
    }
}

//! Bare starts: an interpreter that is given nothing to do, so that it is known what its start
//! alone costs. The spawner allows them besides what the policy names, because they run nothing
//! of anybody's: the arguments are those below, the environment is empty.

use super::strings::Strings;

/// Interpreters by the name of their file without its version, and what has each begin and end.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("bash", &["-c", ":"]),
    ("dash", &["-c", ":"]),
    ("lua", &["-e", ""]),
    ("node", &["-e", "0"]),
    ("perl", &["-e", "1"]),
    ("php", &["-r", ";"]),
    // Without -I, it may import a file of that name from where it is started.
    ("python", &["-I", "-c", "pass"]),
    ("ruby", &["-e", "1"]),
    ("sh", &["-c", ":"]),
    // A program without an interpreter costs at least what this one does.
    ("true", &[]),
];

/// Where those are that may be started though no policy names them.
const FOLDERS: [&[u8]; 3] = [b"/bin", b"/usr/bin", b"/usr/local/bin"];

/// A program that does nothing.
pub const NOTHING: &[u8] = b"/bin/true";

/// What an interpreter is called: the name of its file, without a version.
pub fn name(path: &[u8]) -> &[u8] {
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.' || *byte == b'-';
    let end = file.iter().rposition(|byte| !is_version(byte));
    &file[..end.map_or(0, |last| last + 1)]
}

/// The arguments that have this interpreter begin and end, its name first; `None` for one that is
/// not known.
pub fn arguments(path: &[u8]) -> Option<Strings> {
    let known = rest(path)?;
    let mut arguments = Strings::new();
    let all = [path]
        .into_iter()
        .chain(known.iter().map(|text| text.as_bytes()));
    for argument in all {
        arguments.push(argument).ok()?;
    }
    Some(arguments)
}

/// Whether a start with these arguments and so many variables is a bare one.
pub(super) fn is_bare<'a>(
    path: &[u8],
    arguments: impl Iterator<Item = &'a [u8]>,
    variable_count: usize,
) -> bool {
    let Some(known) = rest(path) else {
        return false;
    };
    let expected = [path]
        .into_iter()
        .chain(known.iter().map(|text| text.as_bytes()));
    variable_count == 0 && arguments.eq(expected)
}

/// Whether it stands where the system's own interpreters do.
pub(super) fn is_of_system(path: &[u8]) -> bool {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    slash.is_some_and(|slash| FOLDERS.contains(&&path[..slash]))
}

fn rest(path: &[u8]) -> Option<&'static [&'static str]> {
    let name = name(path);
    let mut known = INTERPRETERS.iter();
    let found = known.find(|(known, _)| known.as_bytes() == name)?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_bare_with(path: &str, arguments: &[&str], variable_count: usize) -> bool {
        let arguments = arguments.iter().map(|text| text.as_bytes());
        is_bare(path.as_bytes(), arguments, variable_count)
    }

    #[test]
    fn interpreters_are_known_by_their_names_without_version() {
        for (path, expected) in [
            ("/usr/bin/python3", "python"),
            ("/opt/python3.12", "python"),
            ("perl5.36.0", "perl"),
            ("/bin/lua-5.4", "lua"),
            ("/bin/sh", "sh"),
            ("/bin/3", ""),
            ("", ""),
        ] {
            assert_eq!(name(path.as_bytes()), expected.as_bytes(), "{path}");
        }
        let arguments = arguments(b"/usr/bin/python3").unwrap();
        assert_eq!(arguments.block(), b"/usr/bin/python3\0-I\0-c\0pass\0");
        assert!(super::arguments(b"/usr/bin/gcc").is_none());
    }

    #[test]
    fn only_an_interpreter_with_nothing_to_do_is_bare() {
        let python = "/usr/bin/python3";
        assert!(is_bare_with(python, &[python, "-I", "-c", "pass"], 0));
        assert!(is_bare_with("/bin/true", &["/bin/true"], 0));
        let others: [(&str, &[&str], usize); 8] = [
            (python, &[python, "-I", "-c", "pass"], 1),
            (python, &[python, "-I", "-c", "pass", "x"], 0),
            (python, &[python, "-I", "-c", "import os"], 0),
            (python, &[python], 0),
            (python, &["-I", "-c", "pass"], 0),
            (python, &[], 0),
            ("/usr/bin/env", &["/usr/bin/env"], 0),
            ("/bin/sh", &["/bin/sh", "-c", "pass"], 0),
        ];
        for (path, arguments, variable_count) in others {
            let is_bare = is_bare_with(path, arguments, variable_count);
            assert!(!is_bare, "{path} {arguments:?} {variable_count}");
        }
    }

    #[test]
    fn only_folders_of_the_system_need_no_policy() {
        for path in ["/bin/sh", "/usr/bin/python3", "/usr/local/bin/perl"] {
            assert!(is_of_system(path.as_bytes()), "{path}");
        }
        for path in [
            "sh",
            "bin/sh",
            "/sh",
            "/usr/bin/../x/sh",
            "/tmp/sh",
            "/srv/a/bin/sh",
            "",
        ] {
            assert!(!is_of_system(path.as_bytes()), "{path}");
        }
    }
}

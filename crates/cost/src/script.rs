//! What a script is: which program the kernel starts for it, in which language it is written, and
//! which ways of running it there are. Nobody is asked: the first line, the ending and a few words
//! of the text tell.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::CostError;
use crate::limits::SCRIPT_BYTES_MAX;

/// The language of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptLanguage {
    Shell,
    Perl,
    Python,
    Ruby,
    Php,
    Node,
    /// A program that the kernel starts itself.
    Compiled,
    /// A script of something that is not known here.
    Unknown,
}

impl ScriptLanguage {
    pub(crate) fn word(self) -> &'static str {
        match self {
            ScriptLanguage::Shell => "shell",
            ScriptLanguage::Perl => "perl",
            ScriptLanguage::Python => "python",
            ScriptLanguage::Ruby => "ruby",
            ScriptLanguage::Php => "php",
            ScriptLanguage::Node => "node",
            ScriptLanguage::Compiled => "compiled",
            ScriptLanguage::Unknown => "unknown",
        }
    }

    /// A script that does nothing but print an empty line.
    pub(crate) fn nothing(self) -> Option<&'static str> {
        match self {
            ScriptLanguage::Shell => Some("echo\n"),
            ScriptLanguage::Perl => Some("print \"\\n\";\n"),
            ScriptLanguage::Python => Some("print()\n"),
            ScriptLanguage::Ruby => Some("puts\n"),
            ScriptLanguage::Php => Some("<?php echo \"\\n\";\n"),
            ScriptLanguage::Node => Some("console.log()\n"),
            ScriptLanguage::Compiled | ScriptLanguage::Unknown => None,
        }
    }

    /// By the name of its interpreter, versions and folders aside.
    fn of_interpreter(name: &str) -> ScriptLanguage {
        let name = name.rsplit('/').next().unwrap_or_default();
        let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        match stem {
            "sh" | "dash" | "bash" | "ksh" | "zsh" | "busybox" => ScriptLanguage::Shell,
            "perl" => ScriptLanguage::Perl,
            "python" | "pypy" => ScriptLanguage::Python,
            "ruby" => ScriptLanguage::Ruby,
            "php" | "php-cgi" => ScriptLanguage::Php,
            "node" | "nodejs" => ScriptLanguage::Node,
            _ => ScriptLanguage::Unknown,
        }
    }

    fn of_ending(path: &Path) -> ScriptLanguage {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("sh") => ScriptLanguage::Shell,
            Some("pl") => ScriptLanguage::Perl,
            Some("py") => ScriptLanguage::Python,
            Some("rb") => ScriptLanguage::Ruby,
            Some("php") => ScriptLanguage::Php,
            Some("js") => ScriptLanguage::Node,
            _ => ScriptLanguage::Unknown,
        }
    }
}

/// How a script stays, if it is written for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    /// It is a CGI script and no more.
    No,
    /// A Perl CGI script, which hob keeps compiled.
    Kept,
    /// A Python or Perl program with a loop over requests.
    Loop,
    /// It reads lines and prints lines.
    Lines,
}

/// A script that is to be measured.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredScript {
    pub(crate) path: PathBuf,
    pub(crate) language: ScriptLanguage,
    pub(crate) stays: Stays,
    /// The whole first line, without its `#!`; nothing for a program.
    pub(crate) first_line: Option<String>,
    /// What runs it, as a name or a path: the interpreter, not `env`.
    pub(crate) interpreter: Option<String>,
    pub(crate) is_executable: bool,
    /// It can answer as a CGI program.
    pub(crate) is_cgi: bool,
    pub(crate) settings: ScriptSettings,
}

/// What of a route's settings a script is measured with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptSettings {
    /// Variables of its environment, name and value.
    pub env: Vec<(String, String)>,
    /// Modules that a warm interpreter loads before the first request.
    pub preload: Vec<String>,
}

impl MeasuredScript {
    /// Looks at a file.
    pub(crate) fn look(path: &Path) -> Result<MeasuredScript, CostError> {
        let wrong = |what: String| CostError::Arguments(format!("{}: {what}", path.display()));
        let unread = |error| wrong(format!("cannot read the script: {error}"));
        let path = fs::canonicalize(path).map_err(unread)?;
        let facts = fs::metadata(&path).map_err(unread)?;
        if !facts.is_file() {
            return Err(wrong("that is no file; name a script, or a URL".to_owned()));
        }
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(unread)?;
        file.take(SCRIPT_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(unread)?;
        let mode = facts.permissions().mode();
        let script = MeasuredScript::of(path.clone(), &bytes, mode & 0o111 != 0);
        if script.language == ScriptLanguage::Unknown && script.interpreter.is_none() {
            return Err(wrong(
                "nobody can tell what runs it: it needs a first line such as #!/usr/bin/python3"
                    .to_owned(),
            ));
        }
        let is_runnable = script.is_executable || script.first_line.is_none();
        let has_ending = matches!(
            script.language,
            ScriptLanguage::Perl | ScriptLanguage::Python
        );
        if !is_runnable && !has_ending
            || script.language == ScriptLanguage::Compiled && !script.is_executable
        {
            return Err(wrong(format!(
                "it is not executable: chmod +x {}",
                path.display()
            )));
        }
        Ok(script)
    }

    fn of(path: PathBuf, bytes: &[u8], is_executable: bool) -> MeasuredScript {
        let first_line = bytes.strip_prefix(b"#!").map(|rest| {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            String::from_utf8_lossy(line).trim().to_owned()
        });
        let interpreter = first_line.as_deref().and_then(interpreter_of);
        let language = match (&interpreter, bytes.starts_with(b"\x7fELF")) {
            (_, true) => ScriptLanguage::Compiled,
            (Some(name), _) => ScriptLanguage::of_interpreter(name),
            (None, _) => ScriptLanguage::of_ending(&path),
        };
        let text = String::from_utf8_lossy(bytes);
        let has = |word: &str| text.contains(word);
        let stays = match language {
            ScriptLanguage::Python if has("hob.requests(") => Stays::Loop,
            ScriptLanguage::Perl if has("Hob->accept") => Stays::Loop,
            _ if has("CGIPLUSEOF") || has("hob_accept") => Stays::Lines,
            ScriptLanguage::Perl => Stays::Kept,
            _ => Stays::No,
        };
        // The shell library answers one request as plain CGI where nobody keeps it resident.
        let is_cgi = matches!(stays, Stays::No | Stays::Kept) || has("hob_accept");
        MeasuredScript {
            path,
            language,
            stays,
            first_line,
            interpreter,
            is_executable,
            is_cgi,
            settings: ScriptSettings::default(),
        }
    }

    /// Its name without folders.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// What the kernel, or hob, starts for it: program and arguments before the script's own path.
    pub(crate) fn command(&self, path: &str) -> Vec<PathBuf> {
        let line = self.first_line.as_deref().filter(|_| self.is_executable);
        if let Some(line) = line {
            let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
            return [Some(program), argument]
                .into_iter()
                .flatten()
                .map(PathBuf::from)
                .collect();
        }
        match self.usual_interpreter() {
            Some(name) => vec![found(name, path).unwrap_or_else(|| PathBuf::from(name))],
            None => Vec::new(),
        }
    }

    /// The interpreter that it names, else the usual one of its language.
    pub(crate) fn usual_interpreter(&self) -> Option<&str> {
        let usual = match self.language {
            ScriptLanguage::Python => Some("python3"),
            ScriptLanguage::Perl => Some("perl"),
            ScriptLanguage::Shell => Some("sh"),
            ScriptLanguage::Ruby => Some("ruby"),
            ScriptLanguage::Php => Some("php"),
            ScriptLanguage::Node => Some("node"),
            ScriptLanguage::Compiled | ScriptLanguage::Unknown => None,
        };
        self.interpreter.as_deref().or(usual)
    }

    /// The file of what the kernel maps: the script's interpreter, or the program itself.
    pub(crate) fn image(&self, path: &str) -> Option<PathBuf> {
        match self.usual_interpreter() {
            Some(name) => found(name, path).and_then(|file| fs::canonicalize(file).ok()),
            None => Some(self.path.clone()),
        }
    }
}

/// The file a name means, in the folders of a PATH; a name with a slash means itself.
pub(crate) fn found(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| file.exists());
    }
    let folders = path.split(':').map(Path::new);
    folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// `/usr/bin/env -S python3 -u` runs python3.
fn interpreter_of(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let program = words.next()?;
    if program.rsplit('/').next() != Some("env") {
        return Some(program.to_owned());
    }
    let is_name = |word: &&str| !word.starts_with('-') && !word.contains('=');
    words.find(is_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> MeasuredScript {
        MeasuredScript::of(PathBuf::from(name), text.as_bytes(), true)
    }

    #[test]
    fn first_line_names_the_language() {
        for (line, language, interpreter) in [
            ("#!/bin/sh\n", ScriptLanguage::Shell, "/bin/sh"),
            (
                "#! /usr/bin/env python3\n",
                ScriptLanguage::Python,
                "python3",
            ),
            ("#!/usr/bin/env -S perl -w\n", ScriptLanguage::Perl, "perl"),
            (
                "#!/opt/venv/bin/python3.12 -I",
                ScriptLanguage::Python,
                "/opt/venv/bin/python3.12",
            ),
            (
                "#!/usr/bin/awk -f\n",
                ScriptLanguage::Unknown,
                "/usr/bin/awk",
            ),
        ] {
            let script = of("/a/b", line);
            assert_eq!(script.language, language, "{line}");
            assert_eq!(script.interpreter.as_deref(), Some(interpreter), "{line}");
        }
        assert_eq!(of("/a/b.pl", "print 1;").language, ScriptLanguage::Perl);
        assert_eq!(of("/a/b", "\x7fELF").language, ScriptLanguage::Compiled);
    }

    #[test]
    fn way_in_which_a_script_stays_is_in_its_text() {
        let stays = |text: &str| (of("/a", text).stays, of("/a", text).is_cgi);
        assert_eq!(stays("#!/bin/sh\necho\n"), (Stays::No, true));
        assert_eq!(
            stays("#!/bin/sh\necho $CGIPLUSEOF\n"),
            (Stays::Lines, false)
        );
        assert_eq!(
            stays("#!/bin/sh\nwhile hob_accept; do :; done\n"),
            (Stays::Lines, true)
        );
        assert_eq!(stays("#!/usr/bin/perl\nprint 1;\n"), (Stays::Kept, true));
        let python = "#!/usr/bin/python3\nfor request in hob.requests(): pass\n";
        assert_eq!(stays(python), (Stays::Loop, false));
    }

    #[test]
    fn command_is_what_the_kernel_makes_of_the_first_line() {
        let command = |text: &str| of("/a", text).command("/bin");
        let words = |words: &[&str]| words.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            command("#!/usr/bin/env -S a b\n"),
            words(&["/usr/bin/env", "-S a b"])
        );
        assert_eq!(command("#! /bin/sh \n"), words(&["/bin/sh"]));
        assert_eq!(command("\x7fELF"), words(&[]));
    }
}

//! Writes scripts, and builds what is in C with the compiler that is installed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::site::{ComparisonSite, DatabasePaths, SearchPaths, Wants, file_name};

const PROGRAM: &str = include_str!("program.c");
const READER: &str = include_str!("reader.c");
const MODULE: &str = include_str!("module.c");
const RESIDENT: &str = include_str!("resident.c");
const VISIT: &str = include_str!("visit.c");
const SELECT: &str = include_str!("select.c");
/// What libhob offers, frozen with its ABI: a build of hob has the library beside it.
const HEADER: &str = include_str!("../../../libhob/include/hob.h");

const SHELL: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n";
/// Scripts: the interpreter that must be there, the name they are written under, their text.
pub(super) const SCRIPTS: &[(&str, &str, &str)] = &[
    ("sh", "script.sh", SHELL),
    ("perl", "script.pl", include_str!("script.pl")),
    ("python3", "script.py", include_str!("script.py")),
];
const APPLICATION: &str = include_str!("app.py");
const PHP: &str = include_str!("script.php");

/// Bytes of an answer of a macro page, and of what asks a database.
pub(crate) const PAGE_BYTES: u64 = 1024;
/// What is around the row's text.
const SELECT_AROUND: u64 = 12;

/// Writes and builds what can be; says in `lacks` what cannot.
pub(crate) fn write(
    place: &Path,
    found: &SearchPaths<'_>,
    wants: Wants,
    site: &mut ComparisonSite,
) -> io::Result<()> {
    let is_there = |name: &str| {
        found
            .folders
            .iter()
            .any(|folder| folder.join(name).is_file())
    };
    for (interpreter, name, text) in SCRIPTS {
        if is_there(interpreter) {
            let path = site.cgi.join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            site.interpreters.push(interpreter);
        } else {
            let why = format!("no rows with {interpreter}: it is not installed");
            site.lacks.push(why);
        }
    }
    fs::write(site.pages.join("html.ndm"), html_page())?;
    fs::write(site.pages.join("sql.ndm"), SQL_PAGE)?;
    fs::write(site.cgi.join("app.py"), APPLICATION)?;
    fs::write(site.cgi.join("script.php"), PHP)?;
    let mut php = found.folders.iter().map(|folder| folder.join("php-cgi"));
    site.php = php.find(|path| path.is_file());
    if wants.compiled {
        build(place, found, site);
    }
    Ok(())
}

/// Everything in C.
fn build(place: &Path, found: &SearchPaths<'_>, site: &mut ComparisonSite) {
    let page = site.root.join(file_name("1k", PAGE_BYTES));
    let page = format!("-DPAGE=\"{}\"", text(&page));
    match c(place, &site.cgi, &page) {
        Ok(path) => site.c = Some(path),
        Err(why) => site
            .lacks
            .push(format!("no rows with a program in C: {why}")),
    }
    match module(place) {
        Ok(path) => site.module = Some(path),
        Err(why) => site
            .lacks
            .push(format!("no rows with a module of Apache: {why}")),
    }
    match select(place, &site.cgi) {
        Ok(paths) => site.select = Some(paths),
        Err(why) => site.lacks.push(format!("no rows with a database: {why}")),
    }
    let resident = |name, code| {
        let source = (place, code, page.as_str());
        resident(source, site.cgi.join(name), found.program)
    };
    let both =
        resident("resident", RESIDENT).and_then(|path| Ok((path, resident("visit", VISIT)?)));
    match both {
        Ok((path, visit)) => (site.resident, site.visit) = (Some(path), Some(visit)),
        Err(why) => {
            let why = format!("no rows with a resident program over libhob: {why}");
            site.lacks.push(why);
        }
    }
}

/// The program for CGI, FastCGI and lines, and one that reads a file as CGI: linked statically
/// where that is possible, for then they start sooner.
fn c(place: &Path, cgi: &Path, page: &str) -> Result<PathBuf, String> {
    let build = |name: &str, code: &str| {
        let source = place.join(format!("{name}.c"));
        write_source(&source, code)?;
        let program = cgi.join(name);
        let (from, to) = (text(&source), text(&program));
        run("cc", &["-O2", page, "-static", "-o", &to, &from])
            .or_else(|_| run("cc", &["-O2", page, "-o", &to, &from]))?;
        Ok(program)
    };
    build("reader", READER)?;
    build("program", PROGRAM)
}

/// Apache's own tool builds its modules.
fn module(place: &Path) -> Result<PathBuf, String> {
    let folder = place.join("module");
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let source = folder.join("mod_hobcompare.c");
    write_source(&source, MODULE)?;
    let tool = ["apxs", "apxs2"]
        .into_iter()
        .find(|tool| run(tool, &["-q", "CC"]).is_ok())
        .ok_or("apxs is not installed (apache2-dev)")?;
    let compiler = run(tool, &["-q", "CC"])?;
    let mut arguments = vec!["-O2".to_owned(), "-fPIC".to_owned(), "-shared".to_owned()];
    for name in ["CFLAGS", "EXTRA_CPPFLAGS"] {
        let flags = run(tool, &["-q", name])?;
        arguments.extend(flags.split_whitespace().map(str::to_owned));
    }
    for name in ["INCLUDEDIR", "APR_INCLUDEDIR", "APU_INCLUDEDIR"] {
        let folder = run(tool, &["-q", name])?;
        arguments.extend((!folder.is_empty()).then(|| format!("-I{folder}")));
    }
    let module = folder.join("mod_hobcompare.so");
    arguments.extend(["-o".to_owned(), text(&module), text(&source)]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let compiler = compiler.split_whitespace().next().unwrap_or("cc");
    run(compiler, &arguments).or_else(|_| run("cc", &arguments))?;
    Ok(module)
}

/// A macro page without statements: a variable, and text up to its length.
fn html_page() -> String {
    let shown = "\n<p>good day</p>\n\n".len();
    let rest = "x".repeat(PAGE_BYTES as usize - shown);
    format!("%DEFINE greeting = \"good day\"\n%HTML(report) {{\n<p>$(greeting)</p>\n{rest}\n%}}\n")
}

/// A macro page with one.
const SQL_PAGE: &str = "%FUNCTION(DTW_SQL) one() {
SELECT text FROM item WHERE id = $(id)
%REPORT {
%ROW {<p>$(V1)</p>
%}
%}
%}
%HTML(report) {
@one()
%}
";

/// The program that asks a database, and the database, which it makes.
fn select(place: &Path, cgi: &Path) -> Result<DatabasePaths, String> {
    let source = place.join("select.c");
    write_source(&source, SELECT)?;
    let paths = DatabasePaths {
        program: cgi.join("select"),
        database: place.join("item.db"),
    };
    let (from, to) = (text(&source), text(&paths.program));
    let database = format!("-DDATABASE=\"{}\"", text(&paths.database));
    let bytes = format!("-DTEXT_BYTES=\"{}\"", PAGE_BYTES - SELECT_AROUND);
    run(
        "cc",
        &["-O2", &database, &bytes, "-o", &to, &from, "-lsqlite3"],
    )?;
    run(&to, &[])?;
    Ok(paths)
}

/// A program over libhob: the library is beside hob, in its `lib`, or known to pkg-config.
fn resident(
    (place, code, page): (&Path, &str, &str),
    built: PathBuf,
    program: &Path,
) -> Result<PathBuf, String> {
    let source = place.join("resident.c");
    write_source(&source, code)?;
    let (from, to) = (text(&source), text(&built));
    let folder = program.parent().unwrap_or(Path::new("."));
    let mut near = ["libhob.a", "../lib/libhob.a"]
        .map(|name| folder.join(name))
        .into_iter();
    if let Some(library) = near.find(|path| path.is_file()) {
        write_source(&place.join("hob.h"), HEADER)?;
        let include = format!("-I{}", place.display());
        let library = text(&library);
        let libraries = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];
        let arguments = ["-O2", page, "-o", &to, &from, &include, &library];
        run("cc", &[&arguments[..], &libraries].concat())?;
        return Ok(built);
    }
    let flags = run("pkg-config", &["--cflags", "--libs", "libhob"])?;
    let folder = run("pkg-config", &["--variable=libdir", "libhob"])?;
    let run_path = format!("-Wl,-rpath,{folder}");
    let mut arguments = vec!["-O2", page, "-o", &to, &from, &run_path];
    arguments.extend(flags.split_whitespace());
    run("cc", &arguments)?;
    Ok(built)
}

fn write_source(path: &Path, text: &str) -> Result<(), String> {
    let written = fs::write(path, text);
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Runs a tool to its end; what it printed, or why it did not work.
fn run(tool: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|error| format!("{tool}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().next().unwrap_or_default();
    Err(format!("{tool} ended with {}: {first}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_answers_with_what_is_in_the_file_now() {
        let place = tempfile::tempdir().unwrap();
        let page = place.path().join("page");
        let cgi = place.path().join("cgi");
        fs::create_dir(&cgi).unwrap();
        if let Err(why) = c(place.path(), &cgi, &format!("-DPAGE=\"{}\"", text(&page))) {
            println!("skipped: {why}");
            return;
        }
        let reader = text(&cgi.join("reader"));
        for body in ["one", "another"] {
            fs::write(&page, body).unwrap();
            let wanted = format!("Content-Type: text/html\r\n\r\n{body}");
            assert_eq!(run(&reader, &[]).unwrap(), wanted);
        }
        fs::remove_file(&page).unwrap();
        assert!(run(&reader, &[]).is_err());
    }
}

//! The languages that are here: their versions, and their native helpers, built in a test's folder.
//!
//! Everything is looked for where hob looks for it, not on the tester's own PATH.

use std::path::Path;
use std::process::Command;

use crate::harness::library::root;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a language is called with its version, as the page says it.
pub(crate) fn version(language: &str) -> String {
    let (program, arguments): (&str, &[&str]) = match language {
        "C" => ("cc", &["-dumpfullversion"]),
        "Python" => (
            "python3",
            &["-c", "import platform; print(platform.python_version())"],
        ),
        "Perl" => ("perl", &["-e", "printf '%vd', $^V"]),
        _ => ("readlink", &["-f", "/bin/sh"]),
    };
    let said = said(program, arguments);
    match language {
        "C" => format!("GCC {said}"),
        "Shell" => format!("{said} as sh"),
        _ => format!("{language} {said}"),
    }
}

/// Builds Python's accelerator; or says why it cannot be built.
pub(crate) fn python_helper(folder: &Path) -> Result<(), String> {
    let script = "import sysconfig; print(sysconfig.get_path('include'))";
    let include = said("python3", &["-c", script]);
    if !Path::new(&include).join("Python.h").exists() {
        return Err("Python.h is not installed (python3-dev)".to_owned());
    }
    let sources = root().join("lang/python/src/hob");
    let mut compiler = shared("-std=gnu11", &folder.join("_native.abi3.so"));
    compiler
        .args(["-Wall", "-Wextra", "-DPy_LIMITED_API=0x03090000"])
        .arg(format!("-I{include}"))
        .args([sources.join("_native.c"), sources.join("_wsgi.c")])
        .arg("-ldl");
    assert!(compiler.status().unwrap().success(), "_native.c compiles");
    Ok(())
}

/// Builds Perl's accelerator; or says why it cannot be built.
pub(crate) fn perl_helper(folder: &Path) -> Result<(), String> {
    let script = "use Config; print \"$Config{archlibexp}/CORE\\n$Config{privlibexp}\\n\
                  $Config{ccflags}\"";
    let told = said("perl", &["-e", script]);
    let [headers, modules, flags] = told.lines().collect::<Vec<_>>()[..] else {
        panic!("{told}");
    };
    let types = Path::new(modules).join("ExtUtils/typemap");
    if !Path::new(headers).join("perl.h").exists() || !types.exists() {
        return Err("perl.h or xsubpp is not installed".to_owned());
    }
    let source = root().join("lang/perl/lib/Hob/Native.xs");
    let made = folder.join("native_perl.c");
    let status = Command::new("xsubpp")
        .env("PATH", PATH)
        .arg("-typemap")
        .args([&types, &source])
        .stdout(std::fs::File::create(&made).unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "Native.xs is taken by xsubpp");
    let mut compiler = shared("-std=gnu11", &folder.join("Native.so"));
    compiler
        .args(flags.split_whitespace())
        .args(["-DVERSION=\"1.0\"", "-DXS_VERSION=\"1.0\""])
        .arg(format!("-I{headers}"))
        .arg(made);
    assert!(compiler.status().unwrap().success(), "Native.xs compiles");
    Ok(())
}

/// A compiler that makes a shared library.
fn shared(standard: &str, made: &Path) -> Command {
    let mut compiler = Command::new("cc");
    compiler
        .args([standard, "-O1", "-shared", "-fPIC", "-o"])
        .arg(made)
        .arg("-I")
        .arg(root().join("crates/libhob/include"));
    compiler
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", PATH)
        .output()
        .unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

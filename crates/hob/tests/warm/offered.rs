//! Modules that Python had once and scripts still want.

use std::process::Command;

use crate::compare::{Case, serve};

#[test]
fn offered_cgi_module_does_what_python_s_own_did() {
    let at = |file: &str| format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3")
        .arg(at("tests/warm/scripts/compare-cgi.py"))
        .arg(at("../../lang/python/host/offered/cgi.py"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.starts_with("no cgi module") {
        println!("skipped: this Python has no cgi module to compare with");
        return;
    }
    assert!(output.status.success(), "{said}");
}

#[test]
fn interpreter_without_the_cgi_module_is_offered_one() {
    // A Python that had it would find its own first: this makes it one that has not.
    let without = "import sys\nfrom importlib.machinery import PathFinder\n\
                   real = PathFinder.find_spec\n\
                   def find_spec(cls, name, *rest):\n\
                   \x20   return None if name in ('cgi', 'cgitb') else real(name, *rest)\n\
                   PathFinder.find_spec = classmethod(find_spec)\n";
    let form = "import cgi\nform = cgi.FieldStorage()\n\
                print('Content-Type: text/plain\\n')\nprint(form.getvalue('a'), cgi.__spec__)\n";
    let fails = "import cgitb\ncgitb.enable()\n1/0\n";
    let programs = serve(
        &[
            Case::new("without.py", without),
            Case::new("form.py", form),
            Case::new("fails.py", fails),
        ],
        "interpreter = \"python3\", preload = [\"without\"]",
    );
    for _ in 0..2 {
        let text = programs.text("/warm/form.py?a=tea");
        assert!(text.starts_with("tea ModuleSpec(name='cgi'"), "{text}");
        let text = programs.text("/warm/fails.py");
        assert!(text.contains("ZeroDivisionError"), "{text}");
    }
    programs.stop();
}

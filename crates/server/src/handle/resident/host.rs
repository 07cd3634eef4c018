//! The hosts that hob brings along: `python3 -` and `perl -` read a source that holds the modules
//! of the language's package, so that nothing has to be installed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

use crate::config::Host;
use crate::life::memory;

/// Modules of the package of one language: name and text.
type Modules = &'static [(&'static str, &'static str)];

/// The Python package.
const PYTHON: Modules = &[
    (
        "hob",
        include_str!("../../../../../lang/python/src/hob/__init__.py"),
    ),
    (
        "hob.asgi",
        include_str!("../../../../../lang/python/src/hob/asgi.py"),
    ),
    (
        "hob.bell",
        include_str!("../../../../../lang/python/src/hob/bell.py"),
    ),
    (
        "hob.deflate",
        include_str!("../../../../../lang/python/src/hob/deflate.py"),
    ),
    (
        "hob.frames",
        include_str!("../../../../../lang/python/src/hob/frames.py"),
    ),
    (
        "hob.host",
        include_str!("../../../../../lang/python/src/hob/host.py"),
    ),
    (
        "hob.lifespan",
        include_str!("../../../../../lang/python/src/hob/lifespan.py"),
    ),
    (
        "hob.loop",
        include_str!("../../../../../lang/python/src/hob/loop.py"),
    ),
    (
        "hob.native",
        include_str!("../../../../../lang/python/src/hob/native.py"),
    ),
    (
        "hob.shared",
        include_str!("../../../../../lang/python/src/hob/shared.py"),
    ),
    (
        "hob.stream",
        include_str!("../../../../../lang/python/src/hob/stream.py"),
    ),
    (
        "hob.websocket",
        include_str!("../../../../../lang/python/src/hob/websocket.py"),
    ),
    (
        "hob.wsgi",
        include_str!("../../../../../lang/python/src/hob/wsgi.py"),
    ),
];

/// The Perl package, by its files' names.
const PERL: Modules = &[
    (
        "Hob.pm",
        include_str!("../../../../../lang/perl/lib/Hob.pm"),
    ),
    (
        "Hob/Host.pm",
        include_str!("../../../../../lang/perl/lib/Hob/Host.pm"),
    ),
    (
        "Hob/Loop.pm",
        include_str!("../../../../../lang/perl/lib/Hob/Loop.pm"),
    ),
    (
        "Hob/Native.pm",
        include_str!("../../../../../lang/perl/lib/Hob/Native.pm"),
    ),
    (
        "Hob/PSGI.pm",
        include_str!("../../../../../lang/perl/lib/Hob/PSGI.pm"),
    ),
    (
        "Hob/Scripts.pm",
        include_str!("../../../../../lang/perl/lib/Hob/Scripts.pm"),
    ),
    (
        "Hob/Stream.pm",
        include_str!("../../../../../lang/perl/lib/Hob/Stream.pm"),
    ),
];

/// The words after the interpreter: the host reads itself from standard input.
pub(super) fn words(host: Host, what: &str) -> Vec<String> {
    let verb = match host {
        Host::Wsgi => "wsgi",
        Host::Asgi => "asgi",
        Host::Psgi => "psgi",
        Host::Python | Host::Perl => "loop",
        Host::Scripts => "scripts",
    };
    vec!["-".to_owned(), verb.to_owned(), what.to_owned()]
}

/// The host's source, as sealed memory to be its standard input. `native` is the folder where its
/// package looks for native parts first.
///
/// # Errors
/// No memory, no descriptors.
pub(super) fn source(host: Host, native: Option<&Path>) -> io::Result<OwnedFd> {
    static SOURCES: [OnceLock<Vec<u8>>; 2] = [const { OnceLock::new() }; 2];
    let (place, make): (_, fn() -> Vec<u8>) = match host.is_python() {
        true => (0, python),
        false => (1, perl),
    };
    let folder = native.and_then(Path::to_str);
    let mut source = match (host.is_python(), folder) {
        (true, Some(folder)) => format!("_native = {}\n", python_string(folder)),
        (true, None) => "_native = None\n".to_owned(),
        (false, Some(folder)) => format!("$Hob::Native::folder = {};\n", perl_string(folder)),
        (false, None) => String::new(),
    }
    .into_bytes();
    source.extend_from_slice(SOURCES[place].get_or_init(make));
    memory::sealed("hob-host", &source)
}

/// An importer for the package's modules in `sys.meta_path`, then the package's entry.
fn python() -> Vec<u8> {
    let mut source = String::from(PYTHON_IMPORTER);
    source.push_str("_sources = {\n");
    for (name, text) in PYTHON {
        source.push_str(&format!("    {name:?}: {},\n", python_string(text)));
    }
    source.push_str("}\n");
    source.push_str(PYTHON_START);
    source.into_bytes()
}

/// A sub in `@INC` that opens the package's files as strings, then the package's entry.
fn perl() -> Vec<u8> {
    let mut source = String::from("my %sources;\n");
    for (name, text) in PERL {
        source.push_str(&format!("$sources{{'{name}'}} = {};\n", perl_string(text)));
    }
    source.push_str(PERL_START);
    source.into_bytes()
}

const PYTHON_IMPORTER: &str = "\
import sys
from importlib.machinery import ModuleSpec

class _Modules:
    \"\"\"The package's modules, from the text above them.\"\"\"

    def find_spec(self, name, path=None, target=None):
        if name not in _sources:
            return None
        spec = ModuleSpec(name, self, origin='hob:' + name, is_package=name == 'hob')
        spec.has_location = False
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(_sources[name], 'hob:' + name, 'exec'), module.__dict__)

    def get_source(self, name):
        return _sources[name]

    def is_package(self, name):
        return name == 'hob'

";

const PYTHON_START: &str = "\
sys.meta_path.insert(0, _Modules())
import hob.host, hob.native
hob.native.folder = _native
hob.host.main(sys.argv[1:])
";

const PERL_START: &str = "\
unshift @INC, sub {
    my ($self, $name) = @_;
    return undef unless exists $sources{$name};
    open my $file, '<', \\$sources{$name} or return undef;
    $INC{$name} = \"hob:$name\";
    return $file;
};
require Hob::Host;
Hob::Host::main(@ARGV);
";

/// A literal that is this text, in one line.
pub(in crate::handle) fn python_string(text: &str) -> String {
    let mut literal = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => literal.push_str(r"\\"),
            '\'' => literal.push_str(r"\'"),
            '\n' => literal.push_str(r"\n"),
            '\r' => literal.push_str(r"\r"),
            c => literal.push(c),
        }
    }
    literal.push('\'');
    literal
}

/// A literal that is this text.
pub(in crate::handle) fn perl_string(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('\'', r"\'");
    format!("'{escaped}'")
}

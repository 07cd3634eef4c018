//! The hosts of programs that stay: `python3 -` and `perl -` read a source that holds the modules
//! of the language's package.

use super::{perl_string, python_string};
use hob_config::Language;

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

/// The host's source. `native` is the folder where its package looks for native parts first.
pub(super) fn source(language: Language, native: Option<&str>) -> String {
    match (language, native) {
        (Language::Python, Some(folder)) => {
            format!("_native = {}\n{}", python_string(folder), python())
        }
        (Language::Python, None) => format!("_native = None\n{}", python()),
        (Language::Perl, Some(folder)) => {
            let folder = perl_string(folder);
            format!("$Hob::Native::folder = {folder};\n{}", perl())
        }
        (Language::Perl, None) => perl(),
    }
}

/// An importer for the package's modules in `sys.meta_path`, then the package's entry.
fn python() -> String {
    let mut source = String::from(PYTHON_IMPORTER);
    source.push_str("_sources = {\n");
    for (name, text) in PYTHON {
        source.push_str(&format!("    {name:?}: {},\n", python_string(text)));
    }
    source.push_str("}\n");
    source.push_str(PYTHON_START);
    source
}

/// A sub in `@INC` that opens the package's files as strings, then the package's entry.
fn perl() -> String {
    let mut source = String::from("my %sources;\n");
    for (name, text) in PERL {
        source.push_str(&format!("$sources{{'{name}'}} = {};\n", perl_string(text)));
    }
    source.push_str(PERL_START);
    source
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

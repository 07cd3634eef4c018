//! Apache httpd, with the event model, CGI by its daemon, and a module of ours where it could be
//! built. Those that run Python, Perl and PHP within it are loaded only where they are asked for;
//! PHP's wants processes of one thread.

use std::path::Path;

use super::{Extra, Ground, Setup};

/// Where distributions put modules.
const MODULE_FOLDERS: &[&str] = &[
    "/usr/lib/apache2/modules",
    "/usr/lib64/httpd/modules",
    "/usr/lib/httpd/modules",
    "/usr/lib64/apache2",
    "/usr/local/apache2/modules",
];
/// Those that are needed, where they are modules and not built in.
const MODULES: &[(&str, &str)] = &[
    ("unixd_module", "mod_unixd.so"),
    ("authz_core_module", "mod_authz_core.so"),
    ("mime_module", "mod_mime.so"),
    ("alias_module", "mod_alias.so"),
    ("cgid_module", "mod_cgid.so"),
    ("http2_module", "mod_http2.so"),
    ("ssl_module", "mod_ssl.so"),
    ("socache_shmcb_module", "mod_socache_shmcb.so"),
];

/// mod_php, the newest first.
const PHP_MODULES: &[&str] = &[
    "libphp.so",
    "libphp8.4.so",
    "libphp8.3.so",
    "libphp8.2.so",
    "libphp8.1.so",
];

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let loads = loads(ground.extra);
    let user = match ground.is_root {
        true => "User #65534\nGroup #65534\n",
        false => "",
    };
    let tuned = match (ground.is_tuned(), ground.extra) {
        (true, Extra::EmbeddedPhp) => "StartServers 2\nServerLimit 64\nMaxRequestWorkers 64\n",
        (true, _) => {
            "StartServers 1
ServerLimit 1
ThreadsPerChild 64
MaxRequestWorkers 64
ThreadLimit 64
EnableSendfile On
"
        }
        (false, _) => "",
    };
    let module = module(ground);
    let embedded = match ground.extra {
        Extra::Embedded => embedded(ground),
        Extra::EmbeddedPhp => embedded_php(ground),
        _ => String::new(),
    };
    let secure = secure(ground);
    let host = ground.host;
    let text = format!(
        "ServerRoot {root}
PidFile {pid}
ServerName localhost
ErrorLog {errors}
LogLevel crit
DefaultRuntimeDir {root}
Mutex file:{root} default
{loads}{user}{tuned}KeepAlive On
MaxKeepAliveRequests 0
Listen {host}:{port}
TypesConfig /dev/null
AddType text/plain .txt
AddType application/octet-stream .bin
DocumentRoot {site}
<Directory {site}>
  Require all granted
</Directory>
ScriptSock {socket}
ScriptAlias /cgi/ {cgi}/
<Directory {cgi}>
  Require all granted
  Options +ExecCGI
</Directory>
{module}{embedded}{copies}{store}{secure}",
        copies = copies(ground),
        store = store(ground),
        root = at(""),
        pid = at("apache.pid"),
        errors = at("apache.err"),
        port = ground.ports.clear,
        site = ground.site.root.display(),
        cgi = ground.site.cgi.display(),
        socket = at("cgi.sock"),
    );
    let arguments = ["-d", &at(""), "-f", &at("apache.conf"), "-DFOREGROUND"];
    Setup {
        files: vec![("apache.conf", text)],
        programs: vec![ground.program("apache", &arguments)],
        ..Setup::default()
    }
}

/// The program in C as a module.
fn module(ground: &Ground<'_>) -> String {
    match &ground.site.module {
        Some(module) => format!(
            "LoadModule hobcompare_module {}
<Location /module>
  SetHandler hobcompare
  Require all granted
</Location>
",
            module.display()
        ),
        None => String::new(),
    }
}

/// Those modules that are there, with the model of processes first.
fn loads(extra: Extra) -> String {
    let model = match extra {
        Extra::EmbeddedPhp => ("mpm_prefork_module", "mod_mpm_prefork.so"),
        _ => ("mpm_event_module", "mod_mpm_event.so"),
    };
    let all = std::iter::once(&model).chain(MODULES);
    all.filter_map(|(name, file)| load(name, file)).collect()
}

/// The line that loads a module, where that is there.
fn load(name: &str, file: &str) -> Option<String> {
    let mut folders = MODULE_FOLDERS.iter().map(Path::new);
    let path = folders.find(|folder| folder.is_dir())?.join(file);
    let is_there = path.is_file();
    is_there.then(|| format!("LoadModule {name} {}\n", path.display()))
}

/// A file on the file system that a row asks for.
fn store(ground: &Ground<'_>) -> String {
    ground.store().map_or(String::new(), |folder| {
        format!(
            "Alias /store/ {folder}/\n<Directory {folder}>\n  Require all granted\n</Directory>\n"
        )
    })
}

/// Modules for compressed copies.
const COPY_MODULES: &[(&str, &str)] = &[
    ("rewrite_module", "mod_rewrite.so"),
    ("headers_module", "mod_headers.so"),
    ("filter_module", "mod_filter.so"),
    ("deflate_module", "mod_deflate.so"),
];

/// A page whose compressed copy lies beside it, as the manual of mod_deflate has it, or is made.
fn copies(ground: &Ground<'_>) -> String {
    if !ground.extra.has_copies() {
        return String::new();
    }
    let modules = COPY_MODULES.iter();
    let loads: String = modules
        .filter_map(|(name, file)| load(name, file))
        .collect();
    let [beside, made] = ["beside", "made"].map(|name| ground.copies(name));
    format!(
        "{loads}AddType text/html .html
<Directory {beside}>
  Options +FollowSymLinks
  RewriteEngine On
  RewriteCond \"%{{HTTP:Accept-Encoding}}\" \"gzip\"
  RewriteCond \"%{{REQUEST_FILENAME}}\\.gz\" -s
  RewriteRule \"^(.*)\\.html$\" \"$1.html.gz\" [QSA]
  RewriteRule \"\\.html\\.gz$\" \"-\" [T=text/html,E=no-gzip:1]
  <FilesMatch \"\\.html\\.gz$\">
    Header append Content-Encoding gzip
    Header append Vary Accept-Encoding
  </FilesMatch>
</Directory>
<Directory {made}>
  AddOutputFilterByType DEFLATE text/html
</Directory>
"
    )
}

/// An interpreter within Apache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Embedded {
    /// mod_wsgi.
    Python,
    /// mod_perl.
    Perl,
    /// mod_php.
    Php,
}

impl Embedded {
    /// The line that loads it, where it is installed.
    pub(crate) fn load(self) -> Option<String> {
        match self {
            Embedded::Python => load("wsgi_module", "mod_wsgi.so"),
            Embedded::Perl => load("perl_module", "mod_perl.so"),
            Embedded::Php => PHP_MODULES.iter().find_map(|file| load("php_module", file)),
        }
    }
}

/// Scripts in PHP within Apache's own processes.
fn embedded_php(ground: &Ground<'_>) -> String {
    let folder = ground.site.cgi.display();
    Embedded::Php.load().map_or(String::new(), |load| {
        format!(
            "{load}Alias /embedded/ {folder}/
<Location /embedded/>
  SetHandler application/x-httpd-php
  Require all granted
</Location>
"
        )
    })
}

/// An application and scripts that stay within Apache's own processes.
fn embedded(ground: &Ground<'_>) -> String {
    let folder = ground.site.cgi.display();
    let python = Embedded::Python.load().map_or(String::new(), |load| {
        format!("{load}WSGIScriptAlias /wsgi {folder}/app.py\n")
    });
    let perl = Embedded::Perl.load().map_or(String::new(), |load| {
        format!(
            "{load}PerlModule ModPerl::Registry
Alias /perl/ {folder}/
<Location /perl/>
  SetHandler perl-script
  PerlResponseHandler ModPerl::Registry
  PerlOptions +ParseHeaders
  Options +ExecCGI
  Require all granted
</Location>
"
        )
    });
    python + &perl
}

fn secure(ground: &Ground<'_>) -> String {
    let at = |name: &str| ground.path(name);
    let host = ground.host;
    ground.where_secure(|certificate, key| {
        format!(
            "Listen {host}:{port}
<VirtualHost {host}:{port}>
  SSLEngine on
{h2}  SSLCertificateFile {certificate}
  SSLCertificateKeyFile {key}
  SSLProtocol TLSv1.3
  SSLCipherSuite TLSv1.3 TLS_AES_256_GCM_SHA384
  SSLOpenSSLConfCmd Curves X25519
</VirtualHost>
SSLSessionCache shmcb:{cache}(512000)
",
            // Debian's module of it is in the package, and on where it is loaded.
            h2 = match loads(ground.extra).contains("mod_http2.so") {
                true => "  Protocols h2 http/1.1\n",
                false => "",
            },
            port = ground.ports.secure,
            cache = at("sessions"),
        )
    })
}

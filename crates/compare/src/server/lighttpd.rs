//! lighttpd.

use std::path::Path;

use super::{Ground, Setup};
use crate::copies::COPIES;

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let host = ground.host;
    let secure = ground.where_secure(|certificate, key| {
        format!(
            "$SERVER[\"socket\"] == \"{host}:{port}\" {{
  ssl.engine = \"enable\"
  ssl.pemfile = \"{certificate}\"
  ssl.privkey = \"{key}\"
  ssl.openssl.ssl-conf-cmd = (\"MinProtocol\" => \"TLSv1.3\", \"Ciphersuites\" => \"TLS_AES_256_GCM_SHA384\", \"Curves\" => \"X25519\")
}}
",
            port = ground.ports.secure
        )
    });
    let tls = if secure.is_empty() {
        ""
    } else {
        ", \"mod_openssl\""
    };
    let fast_cgi = fast_cgi(ground);
    let (copies_modules, copies) = copies(ground);
    let fast_cgi_module = match fast_cgi.is_empty() {
        true => "",
        false => ", \"mod_fastcgi\"",
    };
    let tuned = match ground.is_tuned() {
        true => "server.max-connections = 4096\nserver.max-fds = 16384\n",
        false => "",
    };
    let text = format!(
        "server.modules = (\"mod_alias\", \"mod_cgi\"{fast_cgi_module}{copies_modules}{tls})
server.document-root = \"{root}\"
server.bind = \"{host}\"
server.port = {port}
server.errorlog = \"{errors}\"
server.upload-dirs = (\"{folder}\")
server.max-keep-alive-requests = 100000000
{tuned}mimetype.assign = ({types}\".txt\" => \"text/plain\", \".bin\" => \"application/octet-stream\")
alias.url = (\"/cgi/\" => \"{cgi}/\", \"/php/\" => \"{cgi}/\"{store})
$HTTP[\"url\"] =~ \"^/cgi/\" {{ cgi.assign = ({php}\"\" => \"\") }}
{fast_cgi}{copies}{secure}",
        store = ground.store().map_or(String::new(), |folder| {
            format!(", \"/store/\" => \"{folder}/\"")
        }),
        types = match ground.extra.has_copies() {
            true => "\".html\" => \"text/html\", \".html.gz\" => \"text/html\", ",
            false => "",
        },
        root = ground.site.root.display(),
        port = ground.ports.clear,
        errors = at("lighttpd.err"),
        folder = at(""),
        cgi = ground.site.cgi.display(),
        php = php(ground),
    );
    Setup {
        files: vec![("lighttpd.conf", text)],
        programs: vec![ground.program("lighttpd", &["-D", "-f", &at("lighttpd.conf")])],
        ..Setup::default()
    }
}

/// The program in C, and PHP as Debian sets it up but with two processes.
fn fast_cgi(ground: &Ground<'_>) -> String {
    let at = |name: &str| ground.path(name);
    let mut servers = vec![];
    if let Some(program) = &ground.site.c {
        servers.push(format!(
            "\"/fastcgi\" => ((\"bin-path\" => \"{} fastcgi\", \"socket\" => \"{}\", \"max-procs\" => 2, \"check-local\" => \"disable\"))",
            program.display(),
            at("fastcgi.sock")
        ));
    }
    if let Some(php) = &ground.site.php {
        servers.push(format!(
            "\"/php/\" => ((\"bin-path\" => \"{}\", \"socket\" => \"{}\", \"max-procs\" => 1, \"bin-environment\" => (\"PHP_FCGI_CHILDREN\" => \"2\", \"PHP_FCGI_MAX_REQUESTS\" => \"0\")))",
            php.display(),
            at("php.sock")
        ));
    }
    match servers.is_empty() {
        true => String::new(),
        false => format!("fastcgi.server = ({})\n", servers.join(",\n  ")),
    }
}

/// A page whose compressed copy lies beside it, by a rule that rewrites to it, or is made: modules
/// and the rules themselves.
fn copies(ground: &Ground<'_>) -> (String, String) {
    if !ground.extra.has_copies() {
        return (String::new(), String::new());
    }
    let beside = format!(
        "$HTTP[\"url\"] =~ \"^/{COPIES}/beside/\" {{
  $REQUEST_HEADER[\"Accept-Encoding\"] =~ \"gzip\" {{
    url.rewrite-once = (\"\" => \"${{url.path}}.gz\")
    setenv.set-response-header = (\"Content-Encoding\" => \"gzip\", \"Vary\" => \"Accept-Encoding\")
  }}
}}
"
    );
    let modules = ", \"mod_rewrite\", \"mod_setenv\"";
    match has_lighttpd_deflate() {
        true => (
            format!("{modules}, \"mod_deflate\""),
            format!(
                "{beside}$HTTP[\"url\"] =~ \"^/{COPIES}/made/\" {{
  deflate.mimetypes = (\"text/html\")
  deflate.allowed-encodings = (\"gzip\")
}}
"
            ),
        ),
        false => (modules.to_owned(), beside),
    }
}

/// Is the module there that compresses? Distributions have it in a package of its own.
pub(crate) fn has_lighttpd_deflate() -> bool {
    let mut folders = MODULE_FOLDERS.iter();
    folders.any(|folder| Path::new(folder).join("mod_deflate.so").is_file())
}

/// Where distributions put modules.
const MODULE_FOLDERS: &[&str] = &["/usr/lib/lighttpd", "/usr/lib64/lighttpd", "/usr/local/lib"];

/// What runs PHP as CGI.
fn php(ground: &Ground<'_>) -> String {
    let php = ground.site.php.as_ref();
    php.map_or(String::new(), |php| {
        format!("\".php\" => \"{}\", ", php.display())
    })
}

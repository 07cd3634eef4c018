//! lighttpd.

use super::{Ground, Setup};

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let secure = ground.where_secure(|certificate, key| {
        format!(
            "$SERVER[\"socket\"] == \"127.0.0.1:{port}\" {{
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
    let (fast_cgi_module, fast_cgi) = match &ground.site.c {
        Some(program) => (
            ", \"mod_fastcgi\"",
            format!(
                "fastcgi.server = (\"/fastcgi\" => ((\"bin-path\" => \"{} fastcgi\", \"socket\" => \"{}\", \"max-procs\" => 2, \"check-local\" => \"disable\")))\n",
                program.display(),
                at("fastcgi.sock")
            ),
        ),
        None => ("", String::new()),
    };
    let tuned = match ground.is_tuned() {
        true => "server.max-connections = 4096\nserver.max-fds = 16384\n",
        false => "",
    };
    let text = format!(
        "server.modules = (\"mod_alias\", \"mod_cgi\"{fast_cgi_module}{tls})
server.document-root = \"{root}\"
server.bind = \"127.0.0.1\"
server.port = {port}
server.errorlog = \"{errors}\"
server.upload-dirs = (\"{folder}\")
server.max-keep-alive-requests = 100000000
{tuned}mimetype.assign = (\".txt\" => \"text/plain\", \".bin\" => \"application/octet-stream\")
alias.url = (\"/cgi/\" => \"{cgi}/\")
$HTTP[\"url\"] =~ \"^/cgi/\" {{ cgi.assign = (\"\" => \"\") }}
{fast_cgi}{secure}",
        root = ground.site.root.display(),
        port = ground.ports.clear,
        errors = at("lighttpd.err"),
        folder = at(""),
        cgi = ground.site.cgi.display(),
    );
    Setup {
        files: vec![("lighttpd.conf", text)],
        folders: vec![],
        programs: vec![ground.program("lighttpd", &["-D", "-f", &at("lighttpd.conf")])],
    }
}

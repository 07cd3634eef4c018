//! uWSGI with a WSGI application: with its own HTTP router, or behind nginx.

use super::{Door, Extra, Ground, Setup, nginx};

/// Two processes that are always there, as hob's programs have two.
pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let is_behind = ground.extra == Extra::Behind;
    let place = match is_behind {
        true => format!("socket = {}\nchmod-socket = 666\n", at("uwsgi.sock")),
        false => router(ground),
    };
    let tuned = match ground.is_tuned() {
        true => "tcp-nodelay = true\n",
        false => "",
    };
    let user = match ground.is_root {
        // Only then may it make its socket in a folder of root's.
        true => "uid = 65534\ngid = 65534\ndrop-after-init = true\n",
        false => "",
    };
    // Debian's has Python and the router as plugins; where they are built in, it passes over these.
    let text = format!(
        "[uwsgi]
plugins = python3
plugins = http
{place}{user}{tuned}master = true
processes = 2
chdir = {folder}
module = app:application
disable-logging = true
",
        folder = ground.site.cgi.display(),
    );
    let own = ground.program("uwsgi", &["--ini", &at("uwsgi.ini")]);
    if !is_behind {
        return Setup {
            files: vec![("uwsgi.ini", text)],
            programs: vec![own],
            ..Setup::default()
        };
    }
    let location = format!(
        "    location /app {{
      include {};
      uwsgi_pass unix:{};
    }}
",
        at("uwsgi_params"),
        at("uwsgi.sock"),
    );
    Setup {
        files: vec![
            ("uwsgi.ini", text),
            ("nginx.conf", nginx::text(ground, "", &location)),
            ("uwsgi_params", nginx::parameters("uwsgi")),
        ],
        programs: vec![own, nginx::program(ground, ground.front)],
        doors: vec![Door::Socket("uwsgi.sock")],
        ..Setup::default()
    }
}

/// Its router keeps connections only where it is told to. It speaks TLS with P-256 alone, where all
/// others agree on X25519: rows over TLS have it behind nginx.
fn router(ground: &Ground<'_>) -> String {
    let (host, port) = (ground.host, ground.ports.clear);
    format!("http = {host}:{port}\nhttp-keepalive = 1\n")
}

//! Caddy.

use super::{Ground, Setup};
use crate::copies::COPIES;

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let root = ground.site.root.display();
    let host = ground.host;
    let copies = copies(ground);
    let secure = ground.where_secure(|certificate, key| {
        format!(
            "https://{host}:{port}, https://localhost:{port} {{
	tls {certificate} {key} {{
		protocols tls1.3
		curves x25519
	}}
	root * {root}
{copies}	file_server
}}
",
            port = ground.ports.secure
        )
    });
    // Whoever asks for an address names no host. Over QUIC, Caddy looks for no certificate then.
    let text = format!(
        "{{
	admin off
	auto_https off
	default_sni localhost
}}
http://{host}:{port} {{
	root * {root}
{copies}	file_server
}}
{secure}",
        port = ground.ports.clear,
    );
    let arguments = [
        "run",
        "--config",
        &at("Caddyfile"),
        "--adapter",
        "caddyfile",
    ];
    let mut program = ground.program("caddy", &arguments);
    // Its run time counts the machine's CPUs, not those it is bound to.
    let names = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
    let homes = names.map(|name| (name.to_owned(), at("")));
    program.environment = homes.into();
    program
        .environment
        .push(("GOMAXPROCS".to_owned(), "1".to_owned()));
    Setup {
        files: vec![("Caddyfile", text)],
        programs: vec![program],
        ..Setup::default()
    }
}

/// A page whose compressed copy lies beside it, or is made.
fn copies(ground: &Ground<'_>) -> String {
    match ground.extra.has_copies() {
        true => format!(
            "	handle /{COPIES}/beside/* {{
		file_server {{
			precompressed gzip
		}}
	}}
	handle /{COPIES}/made/* {{
		encode gzip
		file_server
	}}
"
        ),
        false => String::new(),
    }
}

//! Who may ask, how often, who it is, and which route answers: as hob and nginx are told it.

use super::{Extra, Ground};

/// What is told for one of these, and where.
#[derive(Default)]
pub(super) struct RuleText {
    /// In the site: of hob its keys, and routes behind them; what nginx has in `server`.
    pub(super) inside: String,
    /// Beside it: tables of hob's file, what nginx has in `http`.
    pub(super) beside: String,
    /// Files that it names.
    pub(super) files: Vec<(&'static str, String)>,
}

impl RuleText {
    fn inside(inside: String) -> RuleText {
        RuleText {
            inside,
            ..RuleText::default()
        }
    }
}

/// Who signs in, as `Authorization` has it: ann, with the password sesame.
pub(crate) const CREDENTIALS: &str = "Basic YW5uOnNlc2FtZQ==";
/// Her token, which ends with the century: signed with the key of [`KEYS`] (ES256).
pub(crate) const TOKEN: &str = "Bearer eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImNvbXBhcmUifQ.\
    eyJpc3MiOiJjb21wYXJlIiwiYXVkIjoiY29tcGFyZSIsInN1YiI6ImFubiIsImV4cCI6NDEwMjQ0NDgwMH0.\
    1vr0gjx5QWy_vG2TTGWD0fUlcoxKubWcOErn9TNxqDZZoR72TODCs6TvCSHIIoy1SWIYyrwZwufu-2iKpEEgog";

/// The file of accounts with her in it, as Apache's `htpasswd` makes it where nothing is said: a
/// thousand rounds of MD5.
const ACCOUNTS: &str = "ann:$apr1$BrK6Vndg$Z3s/wpZAKij45ht/kQWkF1\n";
/// What it is called in the folder of a server.
const ACCOUNTS_FILE: &str = "accounts";
/// The issuer's public key.
const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"compare",
"x":"9_utQJKpUMvOGtOsclTEr8gxZD-hrhPEfp-McwJM0fk",
"y":"Uby88ychzlG858GNHbrA4AuARuvU-oKmTd-ulthx4UQ"}]}
"#;
const KEYS_FILE: &str = "keys.json";
/// The list of paths that have moved.
const MOVED_FILE: &str = "moved.txt";

/// Where a client can ask itself whom the server asks about each request.
pub(crate) const ASKED_PATH: &str = "/asked";

/// What hob is told.
pub(super) fn of_hob(ground: &Ground<'_>) -> RuleText {
    match ground.extra {
        Extra::Allow(count) => {
            let networks: Vec<String> = networks(count).map(|one| format!("\"{one}\"")).collect();
            let networks = networks.join(", ");
            RuleText::inside(format!("access = {{ allow = [{networks}] }}\n"))
        }
        Extra::Rate => {
            RuleText::inside("rate = { requests = \"1000000/s\", burst = 1000000 }\n".to_owned())
        }
        Extra::AtOnce => RuleText::inside("concurrency = { requests = 1000 }\n".to_owned()),
        Extra::Try => {
            RuleText::inside("files = { try = [\"{path}\", \"{path}.txt\"] }\n".to_owned())
        }
        Extra::Moved(count) => {
            let lines = (0..count).map(|number| format!("/old/{number}.html /new/{number}\n"));
            RuleText {
                files: vec![(MOVED_FILE, lines.collect())],
                ..RuleText::inside(format!("redirects = \"{MOVED_FILE}\"\n"))
            }
        }
        Extra::Conditions(count) => RuleText::inside((0..count).map(condition).collect()),
        Extra::SignIn => required(
            &format!("htpasswd = \"{ACCOUNTS_FILE}\""),
            vec![(ACCOUNTS_FILE, ACCOUNTS.to_owned())],
        ),
        Extra::Token => required(
            &format!(
                "jwt = {{ keys = \"{KEYS_FILE}\", issuer = \"compare\", audience = \"compare\", \
                 algorithms = [\"ES256\"] }}"
            ),
            vec![(KEYS_FILE, KEYS.to_owned())],
        ),
        Extra::Forward => forward_of_hob(ground),
        _ => RuleText::default(),
    }
}

/// What nginx is told.
pub(super) fn of_nginx(ground: &Ground<'_>) -> RuleText {
    match ground.extra {
        Extra::Allow(count) => {
            let networks: String = networks(count)
                .map(|one| format!("    allow {one};\n"))
                .collect();
            RuleText::inside(format!("{networks}    deny all;\n"))
        }
        Extra::Rate => RuleText {
            beside: "  limit_req_zone $binary_remote_addr zone=each:10m rate=1000000r/s;\n"
                .to_owned(),
            ..RuleText::inside("    limit_req zone=each burst=1000000 nodelay;\n".to_owned())
        },
        Extra::AtOnce => RuleText {
            beside: "  limit_conn_zone $binary_remote_addr zone=at_once:10m;\n".to_owned(),
            ..RuleText::inside("    limit_conn at_once 1000;\n".to_owned())
        },
        Extra::Try => RuleText::inside("    try_files $uri $uri.txt =404;\n".to_owned()),
        Extra::SignIn => RuleText {
            files: vec![(ACCOUNTS_FILE, ACCOUNTS.to_owned())],
            ..RuleText::inside(format!(
                "    auth_basic staff;\n    auth_basic_user_file {ACCOUNTS_FILE};\n"
            ))
        },
        Extra::Forward => forward_of_nginx(ground),
        _ => RuleText::default(),
    }
}

/// So many networks, and behind them those that clients of a comparison are in.
fn networks(count: u32) -> impl Iterator<Item = String> {
    let before = (0..count).map(|number| format!("10.{number}.0.0/16"));
    let own = ["127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/2"];
    before.chain(own.map(str::to_owned))
}

/// A route of every path, which a request of the comparison does not meet.
fn condition(number: u32) -> String {
    format!(
        "
[[site.route]]
path = \"/*\"
when = {{ query = {{ variant = \"{number}\" }} }}
respond = {{ status = 404 }}
"
    )
}

/// Only those whom this source of accounts knows.
fn required(source: &str, files: Vec<(&'static str, String)>) -> RuleText {
    RuleText {
        inside: "require = \"staff\"\n".to_owned(),
        beside: format!("\n[[auth]]\nname = \"staff\"\n{source}\n"),
        files,
    }
}

/// A server is asked about each request for text, which is this one at another path; a client can
/// ask it the same way.
fn forward_of_hob(ground: &Ground<'_>) -> RuleText {
    let to = format!("http://{}:{}", ground.host, ground.ports.clear);
    let proxied = format!("rewrite = \"/who\"\nproxy = {{ to = \"{to}\" }}");
    let inside = format!(
        "
[[site.route]]
path = \"/who\"
respond = {{ status = 200, body = \"\" }}

[[site.route]]
path = \"{ASKED_PATH}\"
{proxied}

[[site.route]]
path = \"/verify\"
internal = true
{proxied}

[[site.route]]
path = \"/*.txt\"
require = \"staff\"
files = {{}}
"
    );
    RuleText {
        inside,
        beside: "\n[[auth]]\nname = \"staff\"\nforward = \"/verify\"\n".to_owned(),
        files: vec![],
    }
}

/// The same, over connections that are kept, too.
fn forward_of_nginx(ground: &Ground<'_>) -> RuleText {
    let (host, port) = (ground.host, ground.ports.clear);
    let proxied = "proxy_pass http://itself/who; proxy_http_version 1.1; proxy_set_header \
                   Connection \"\";";
    let inside = format!(
        "    location = /who {{ return 200 \"\"; }}
    location = {ASKED_PATH} {{ {proxied} }}
    location = /verify {{ internal; proxy_pass_request_body off; {proxied} }}
    location ~ \\.txt$ {{ auth_request /verify; }}
"
    );
    RuleText {
        inside,
        beside: format!("  upstream itself {{ server {host}:{port}; keepalive 64; }}\n"),
        files: vec![],
    }
}

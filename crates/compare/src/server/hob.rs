//! hob: this program or another build of it.

use super::{Extra, Ground, Setup};
use crate::supervisor::ProgramCommand;

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let at = |name: &str| ground.path(name);
    let (log, top) = match ground.extra {
        Extra::CombinedLog => (
            log(&at("access.log"), "combined"),
            "default_log = \"access\"\n",
        ),
        Extra::CustomLog => (
            log(&at("access.log"), CUSTOM_FORMAT),
            "default_log = \"access\"\n",
        ),
        Extra::Names => (
            log(
                &at("access.log"),
                &format!("{{client_name}} {CUSTOM_FORMAT}"),
            ),
            "default_log = \"access\"\nnames = true\n",
        ),
        _ => (String::new(), ""),
    };
    let more = match ground.extra {
        Extra::Bare => "activity = \"off\"\nhistory = { bytes = 0 }\n".to_owned(),
        Extra::Nice(level) => format!("nice = {level}\n"),
        Extra::NoCache => "cache = \"off\"\n".to_owned(),
        _ => String::new(),
    };
    let cache = match ground.extra {
        Extra::WholeCache => "[cache]\nmax_file = \"16MiB\"\nmax_file_tls = \"16MiB\"\n",
        _ => "",
    };
    let send_buffer = match ground.extra {
        Extra::SendBuffer(bytes) => format!("send_buffer = {bytes}\n"),
        _ => String::new(),
    };
    let secure = ground.where_secure(|certificate, key| {
        format!(
            "
[[listen]]
address = \"127.0.0.1:{}\"
tls = {{ certificate = \"{certificate}\", key = \"{key}\", minimum = \"1.3\", suites = [\"TLS_AES_256_GCM_SHA384\"], http3 = {} }}
",
            ground.ports.secure,
            ground.extra == Extra::Http3
        )
    });
    let control = match ground.extra.is_looked_at() {
        true => at(CONTROL),
        false => "off".to_owned(),
    };
    let text = format!(
        "control = \"{control}\"
state = \"{state}\"
{top}{more}{cache}{log}
[[listen]]
address = \"127.0.0.1:{port}\"
{send_buffer}{secure}
[[site]]
root = \"{root}\"
{routes}{scripts}",
        state = at("state"),
        port = ground.ports.clear,
        root = ground.site.root.display(),
        routes = routes(ground.extra),
        scripts = ground.site.hob_routes(&shared(ground.extra)),
    );
    Setup {
        files: vec![("hob.toml", text)],
        folders: vec!["state"],
        programs: vec![program(ground)],
        ..Setup::default()
    }
}

/// Where commands that mean another server do not find it.
fn program(ground: &Ground<'_>) -> ProgramCommand {
    let mut program = ground.program("hob", &["serve", "--config", &ground.path("hob.toml")]);
    program.environment = vec![("XDG_RUNTIME_DIR".to_owned(), ground.path("state"))];
    program
}

/// The control socket, in the server's folder; in a folder of its own, as hob wants it.
pub(crate) const CONTROL: &str = "state/control";

const CUSTOM_FORMAT: &str =
    "{client} {time_iso} {method} {target} {status} {total_us} {bytes_out} {referer} {user_agent}";

fn log(path: &str, format: &str) -> String {
    format!("\n[[log]]\nname = \"access\"\nfile = \"{path}\"\nformat = \"{format}\"\n")
}

/// Keys of a program whose answers travel in shared memory.
fn shared(extra: Extra) -> String {
    match extra {
        Extra::Chunks(count) => format!(", shared = {{ chunks = {count} }}"),
        Extra::ChunkKib(kib) => format!(", shared = {{ chunk = \"{kib}KiB\" }}"),
        _ => String::new(),
    }
}

/// Routes that another path would take, as a site with so many has them.
fn routes(extra: Extra) -> String {
    let Extra::Routes(count) = extra else {
        return String::new();
    };
    let route = |number| {
        format!("\n[[site.route]]\npath = \"/section-{number}/*\"\nrespond = {{ status = 404 }}\n")
    };
    (0..count).map(route).collect()
}

//! hob: this program or another build of it.

use super::rules::{self, RuleText};
use super::{Door, Extra, Ground, Setup};
use crate::copies::COPIES;
use crate::supervisor::ProgramCommand;

pub(super) fn setup(ground: &Ground<'_>) -> Setup {
    let rules = rules::of_hob(ground);
    let mut setup = Setup {
        files: vec![("hob.toml", config(ground, &rules))],
        folders: vec!["state"],
        programs: vec![program(ground, "hob")],
        ..Setup::default()
    };
    setup.files.extend(rules.files);
    if let Some(there) = there(ground) {
        setup.files.push(("there.toml", there));
        setup.folders.push("there");
        setup.programs.push(ground.there(program(ground, "there")));
        setup.doors.push(Door::Away(ground.away()));
    }
    setup
}

fn config(ground: &Ground<'_>, rules: &RuleText) -> String {
    let at = |name: &str| ground.path(name);
    let host = ground.host;
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
    let [more, cache, send_buffer] = switches(ground.extra);
    let secure = ground.where_secure(|certificate, key| {
        format!(
            "
[[listen]]
address = \"{host}:{}\"
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
    format!(
        "control = \"{control}\"
state = \"{state}\"
{top}{more}{cache}{log}
[[listen]]
address = \"{host}:{port}\"
{send_buffer}{secure}
[[site]]
root = \"{root}\"
{rules}{routes}{copies}{store}{remote}{fastcgi}{scripts}{beside}",
        state = at("state"),
        port = ground.ports.clear,
        root = ground.site.root.display(),
        rules = rules.inside,
        routes = routes(ground.extra),
        copies = copies(ground),
        store = store(ground),
        remote = remote(ground),
        fastcgi = fastcgi(ground),
        scripts = ground.site.hob_routes(&shared(ground.extra)),
        beside = rules.beside,
    )
}

/// What is switched on besides: keys of the file, of its cache, of where it listens.
fn switches(extra: Extra) -> [String; 3] {
    let more = match extra {
        Extra::Bare => "activity = \"off\"\nhistory = { bytes = 0 }\n".to_owned(),
        Extra::Nice(level) => format!("nice = {level}\n"),
        Extra::NoCache | Extra::CopiesNoCache | Extra::StoredNoCache(_) => {
            "cache = \"off\"\n".to_owned()
        }
        Extra::Threads(count) => format!("threads = {count}\n"),
        _ => String::new(),
    };
    let cache = match extra {
        Extra::WholeCache => "[cache]\nmax_file = \"16MiB\"\nmax_file_tls = \"16MiB\"\n",
        _ => "",
    };
    let send_buffer = match extra {
        Extra::SendBuffer(bytes) => format!("send_buffer = {bytes}\n"),
        _ => String::new(),
    };
    [more, cache.to_owned(), send_buffer]
}

/// Scripts in PHP, over FastCGI, where they are asked for so.
fn fastcgi(ground: &Ground<'_>) -> String {
    if ground.extra != Extra::Fastcgi {
        return String::new();
    }
    let folder = ground.site.cgi.display();
    let keys = format!("run = \"php-fpm\", root = \"{folder}\", children = 2");
    format!("\n[[site.route]]\npath = \"/php/*\"\nfastcgi = {{ {keys} }}\n")
}

/// A page whose compressed copy is looked for, or made, or neither.
fn copies(ground: &Ground<'_>) -> String {
    if !ground.extra.has_copies() {
        return String::new();
    }
    let route = |(name, keys): (&str, &str)| {
        let folder = ground.copies(name);
        format!(
            "\n[[site.route]]\npath = \"/{COPIES}/{name}/*\"\nfiles = {{ root = \"{folder}\", {keys} }}\n"
        )
    };
    let all = [
        ("beside", "precompressed = [\"gz\"], compress = []"),
        ("made", "precompressed = [], compress = [\"gzip\"]"),
        ("plain", "precompressed = [], compress = []"),
    ];
    all.map(route).concat()
}

/// A file on the file system that a row asks for: the root of a route lies there itself, so that
/// no mount is crossed on the way to it.
fn store(ground: &Ground<'_>) -> String {
    ground.store().map_or(String::new(), |folder| {
        format!("\n[[site.route]]\npath = \"/store/*\"\nfiles = {{ root = \"{folder}\" }}\n")
    })
}

/// Programs on the other machine, and the way each is run there.
fn programs(ground: &Ground<'_>) -> Vec<(&'static str, String)> {
    let cgi = ground.site.c.iter().map(|program| {
        let cgi = format!("cgi = {{ script = \"{}\" }}", program.display());
        ("cgi", cgi)
    });
    let resident = ground.site.resident.iter().map(|program| {
        let program = program.display();
        let workers = "workers = { min = 2, max = 2 }";
        let keys = format!("run = [\"{program}\"], carrier = \"stream\", {workers}");
        ("resident", format!("resident = {{ {keys} }}"))
    });
    cgi.chain(resident).collect()
}

/// What the hob of the other machine is told, where there is one.
fn there(ground: &Ground<'_>) -> Option<String> {
    let hobs = ground
        .site
        .hobs
        .as_ref()
        .filter(|_| ground.extra.is_away())?;
    let (pair, authority) = (&hobs.pair, &hobs.authority);
    let mut text = format!(
        "control = \"off\"
state = \"{state}\"

[[listen]]
address = \"{address}\"
tls = {{ certificate = \"{certificate}\", key = \"{key}\" }}
offers = \"{authority}\"
",
        state = ground.path("there"),
        address = ground.away(),
        certificate = pair.certificate,
        key = pair.key,
    );
    let programs = programs(ground);
    for (name, _) in &programs {
        text.push_str(&format!(
            "\n[[offer]]\nprogram = \"{name}\"\nto = [\"localhost\"]\n"
        ));
    }
    text.push_str("\n[[site]]\n");
    for (name, handler) in &programs {
        text.push_str(&format!(
            "\n[[site.route]]\npath = \"/{name}\"\nname = \"{name}\"\ninternal = true\n{handler}\n"
        ));
    }
    Some(text)
}

/// Routes that lead there: over connections that are kept, or one for each request.
fn remote(ground: &Ground<'_>) -> String {
    let Some(hobs) = ground.site.hobs.as_ref().filter(|_| ground.extra.is_away()) else {
        return String::new();
    };
    let (pair, authority) = (&hobs.pair, &hobs.authority);
    let (certificate, key) = (&pair.certificate, &pair.key);
    let to = ground.away();
    let mut text = String::new();
    for (name, _) in programs(ground) {
        for (way, keep) in [("kept", ""), ("once", "keep_requests = 1\n")] {
            text.push_str(&format!(
                "
[[site.route]]
path = \"/{way}/{name}\"

[site.route.remote]
to = \"tls://{to}\"
program = \"{name}\"
{keep}tls = {{ ca = \"{authority}\", certificate = \"{certificate}\", key = \"{key}\", name = \"localhost\" }}
"
            ));
        }
    }
    text
}

/// Where commands that mean another server do not find it.
fn program(ground: &Ground<'_>, name: &str) -> ProgramCommand {
    let config = ground.path(&format!("{name}.toml"));
    let mut program = ground.program(name, &["serve", "--config", &config]);
    program.environment = vec![("XDG_RUNTIME_DIR".to_owned(), ground.path("state"))];
    if let Extra::Diagnostics(level) = ground.extra {
        let variable = ("HOB_LOG".to_owned(), level.name().to_owned());
        program.environment.push(variable);
    }
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

//! `hob status --environment` for people: what it is, and what it is here.

use hob_load::page::bytes;
use serde_json::Value;

use crate::escape;

/// What is known, a line each; parts have a heading.
pub(crate) fn text(told: &Value) -> String {
    let build = &told["build"];
    let of_build = format!(
        "{} (optimisation {}), {}, for {}",
        word(&build["profile"]),
        word(&build["opt_level"]),
        word(&build["rustc"]),
        word(&build["target"])
    );
    let mut lines = vec![
        ("version", word(&told["version"])),
        ("build", of_build),
        ("host name", word(&told["hostname"])),
        (
            "time zone",
            format!("{}; times here are UTC", word(&told["time_zone"])),
        ),
    ];
    let kernel = &told["kernel"];
    let names = ["name", "release", "version", "machine"].map(|name| word(&kernel[name]));
    lines.push(("kernel", names.join(" ")));
    let landlock = match kernel["landlock"].as_u64() {
        Some(version) => format!("version {version}"),
        None => "not in this kernel".to_owned(),
    };
    lines.push(("Landlock", landlock));
    lines.push(("io_uring", word(&kernel["io_uring"])));
    lines.push(("longest backlog", word(&kernel["backlog_max"])));
    lines.extend(machine(&told["machine"]));
    lines.extend(server(&told["server"]));
    let mut text = aligned(&lines, "");
    text.push_str("limits\n");
    text.push_str(&aligned(&limits(&told["limits"]), "  "));
    list(&mut text, "listeners", &told["listeners"]);
    list(&mut text, "warnings", &told["warnings"]);
    text.push_str("file systems\n");
    text.push_str(&aligned(&file_systems(&told["file_systems"]), "  "));
    text.push_str("network interfaces\n");
    text.push_str(&aligned(&interfaces(&told["interfaces"]), "  "));
    for program in told["programs"].as_array().into_iter().flatten() {
        let (site, route) = (word(&program["site"]), word(&program["route"]));
        text.push_str(&format!("program of {route} on {site}\n"));
        text.push_str(&aligned(&confined(program), "  "));
    }
    text
}

fn machine(machine: &Value) -> Vec<(&'static str, String)> {
    let size = |name: &str| match machine[name].as_f64() {
        Some(size) => bytes(size),
        None => "none".to_owned(),
    };
    let cpus = format!(
        "{} of {} ({})",
        word(&machine["cpus_usable"]),
        word(&machine["cpus"]),
        word(&machine["affinity"])
    );
    let quota = match machine["cpu_quota"].as_f64() {
        Some(quota) => format!("{quota:.2} CPUs"),
        None => "none".to_owned(),
    };
    vec![
        ("hypervisor", word(&machine["hypervisor"])),
        ("CPU", word(&machine["cpu"])),
        ("CPUs", cpus),
        ("CPU quota", quota),
        ("memory", size("memory_bytes")),
        ("memory limit", size("memory_limit_bytes")),
        ("process limit", word(&machine["pids_limit"])),
    ]
}

fn server(server: &Value) -> Vec<(&'static str, String)> {
    let process = &server["process"];
    let separated = match server["scripts_separated"].as_bool() {
        Some(true) => "separated from the server",
        _ => "not separated from the server",
    };
    vec![
        (
            "server",
            format!(
                "process {}, {} threads",
                word(&process["pid"]),
                word(&server["threads"])
            ),
        ),
        (
            "user and group",
            format!(
                "{} {}",
                word(&process["user_id"]),
                word(&process["group_id"])
            ),
        ),
        ("capabilities", word(&process["capabilities"])),
        ("no new privileges", word(&process["no_new_privileges"])),
        ("seccomp", word(&process["seccomp"])),
        ("control group", word(&process["cgroup"])),
        ("programs", separated.to_owned()),
        ("descriptors open", word(&server["descriptors"])),
    ]
}

fn limits(limits: &Value) -> Vec<(&str, String)> {
    let named = limits.as_object().into_iter().flatten();
    let limit = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    };
    named
        .map(|(name, both)| {
            let (soft, hard) = (limit(&both["soft"]), limit(&both["hard"]));
            (name.as_str(), format!("{soft} (at most {hard})"))
        })
        .collect()
}

fn file_systems(all: &Value) -> Vec<(&str, String)> {
    let mut lines = vec![];
    for root in all.as_array().into_iter().flatten() {
        let kind = match &root["kind"] {
            Value::Null => "of unknown kind".to_owned(),
            kind => word(kind),
        };
        let waits = match root["local"].as_bool() {
            Some(false) => ", may have to be waited for",
            _ => "",
        };
        let folder = root["folder"].as_str().unwrap_or_default();
        lines.push((folder, format!("{kind}{waits}")));
    }
    lines
}

fn interfaces(all: &Value) -> Vec<(&str, String)> {
    let line = |one| {
        let one: &Value = one;
        let mtu = word(&one["mtu"]);
        let packets = one["packets_per_request"].as_f64();
        let packets = packets.map_or(String::new(), |packets| {
            format!(", {packets:.1} packets for each request, those of others counted")
        });
        let name = one["name"].as_str().unwrap_or_default();
        (name, format!("MTU {mtu}{packets}"))
    };
    all.as_array().into_iter().flatten().map(line).collect()
}

fn confined(program: &Value) -> Vec<(&'static str, String)> {
    let namespaces = program["namespaces"].as_array();
    let namespaces: Vec<String> = namespaces.into_iter().flatten().map(word).collect();
    let group = match &program["cgroup"] {
        Value::Object(limits) => {
            let limits = limits.iter().filter(|(_, limit)| !limit.is_null());
            let limits: Vec<String> = limits
                .map(|(name, limit)| format!("{name} {limit}"))
                .collect();
            format!("of its own {}", limits.join(", "))
                .trim_end()
                .to_owned()
        }
        _ => "none of its own".to_owned(),
    };
    let mut lines = vec![
        (
            "user",
            program["user"]
                .as_str()
                .map_or("the usual one".to_owned(), str::to_owned),
        ),
        ("no new privileges", word(&program["no_new_privileges"])),
        ("files", word(&program["files"])),
        (
            "namespaces",
            match namespaces.is_empty() {
                true => "none of its own".to_owned(),
                false => namespaces.join(", "),
            },
        ),
        ("control group", group),
    ];
    for process in program["running"].as_array().into_iter().flatten() {
        let pid = word(&process["pid"]);
        let user = word(&process["user_id"]);
        let group = word(&process["cgroup"]);
        lines.push((
            "process",
            format!("{pid}, user {user}, control group {group}"),
        ));
    }
    lines
}

fn list(text: &mut String, name: &str, items: &Value) {
    let items = items.as_array().filter(|items| !items.is_empty());
    for (index, item) in items.into_iter().flatten().enumerate() {
        if index == 0 {
            text.push_str(&format!("{name}\n"));
        }
        text.push_str(&format!("  {}\n", word(item)));
    }
}

/// Lines whose second halves stand below each other.
fn aligned(lines: &[(&str, String)], indent: &str) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = lines
        .iter()
        .map(|(name, value)| format!("{indent}{name:width$}  {value}\n"));
    lines.collect()
}

/// A value in words.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => escape::line(text).into_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_known_is_none_and_control_characters_are_shown() {
        let told = json!({
            "version": "1.2.3",
            "hostname": "a\u{1b}[2Jb",
            "limits": { "open_files": { "soft": 1024, "hard": null } },
            "listeners": ["127.0.0.1:80"],
            "programs": [{
                "site": "*", "route": "/cgi-bin/*", "files": "not restricted",
                "cgroup": { "memory_bytes": 1048576, "pids": null }, "namespaces": ["net"],
            }],
        });
        let text = text(&told);
        for line in [
            "version            1.2.3\n",
            "host name          a\\x1b[2Jb\n",
            "memory limit       none\n",
            "limits\n  open_files  1024 (at most none)\nlisteners\n  127.0.0.1:80\n",
            "program of /cgi-bin/* on *\n  user               the usual one\n",
            "  control group      of its own memory_bytes 1048576\n",
            "  namespaces         net\n",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
    }
}

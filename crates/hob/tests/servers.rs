//! Several servers of one user: every command reaches the one it means, or says which there are.
#![allow(clippy::unwrap_used)] // Outside of #[test] functions as well.

mod harness;

#[path = "bench/schema.rs"]
mod schema;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Output, Stdio};
use std::time::UNIX_EPOCH;

use harness::client::get;
use harness::{DEADLINE, Hob, Place, User, children_of, config, is_root, send_signal, text_of};
use rustix::process::Signal;
use serde_json::Value;

/// A program that stays: it answers in lines what it was told to.
const APP: &str = "exec 3<\"$CGIPLUSIN\"\n\
    while read -r line <&3; do\n\
    while read -r line <&3 && [ -n \"$line\" ]; do :; done\n\
    printf 'Content-Type: text/plain\\n\\nx%s\\n' \"$CGIPLUSEOF\"\n\
    done\n";

/// A site in a folder of its own, with a program that stays.
fn add(place: &Place, name: &str) -> String {
    place.folder(name);
    place.folder(&format!("{name}/site"));
    place.write(&format!("{name}/app.sh"), APP);
    let file = format!("{name}/hob.toml");
    let route = "[[site.route]]\npath = \"/app\"\n\
                 resident = { run = [\"sh\", \"app.sh\"], dir = \".\", carrier = \"lines\", \
                 workers = { min = 1, max = 1 } }\n";
    place.write(&file, &format!("{}{route}", config("", "site")));
    file
}

fn start(place: &Place, file: &str) -> Hob {
    place.serve(&["--config", file])
}

/// Two of them, each with its config.
fn two(place: &Place) -> [(String, Hob); 2] {
    ["one", "two"].map(|name| {
        let file = add(place, name);
        let hob = start(place, &file);
        (file, hob)
    })
}

fn done(output: &Output) -> String {
    let text = text_of(output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

fn refused(output: &Output, code: i32, texts: &[&str]) -> String {
    let text = text_of(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in texts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    text
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text_of(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `hob servers --json` lists.
fn listed(place: &Place) -> Vec<Value> {
    let told = json(&place.run(&["servers", "--json"]));
    told["servers"].as_array().unwrap().clone()
}

fn generation(place: &Place, file: &str) -> u64 {
    let told = json(&place.run(&["status", "--json", "--config", file]));
    told["generation"].as_u64().unwrap()
}

#[test]
fn each_command_reaches_the_server_of_its_config() {
    let place = Place::new();
    let servers = two(&place);
    for (at, (file, hob)) in servers.iter().enumerate() {
        let (other_file, other) = &servers[1 - at];
        let run = |arguments: &[&str]| place.run(&[arguments, &["--config", file]].concat());

        let status = json(&run(&["status", "--json"]));
        assert_eq!(status["keeper"]["pid"], hob.pid());
        let real = std::fs::canonicalize(place.path(file)).unwrap();
        assert_eq!(status["config"], real.to_str().unwrap());

        let before = generation(&place, other_file);
        done(&run(&["reload"]));
        assert_eq!(generation(&place, other_file), before);
        assert_eq!(generation(&place, file), 2);

        let target = format!("/app?{file}");
        let mut watch = place.command();
        watch.args([
            "watch",
            "path=/app",
            "--count",
            "1",
            "--json",
            "--config",
            file,
        ]);
        let mut watch = Hob::start(watch);
        watch.wait_for("hob: watching");
        assert_eq!(get(other.port(), "/app?unseen").unwrap().text(), "x");
        assert_eq!(get(hob.port(), &target).unwrap().text(), "x");
        assert_eq!(watch.exit_code(), Some(0));
        assert!(
            !watch.all_printed().contains("unseen"),
            "{}",
            watch.printed()
        );

        // A thread that is busy hands over its records a little later.
        let history = loop {
            let history = done(&run(&["history"]));
            if history.contains(&target) {
                break history;
            }
        };
        assert!(!history.contains(&format!("?{other_file}")), "{history}");

        let workers = children_of(hob.spawner());
        let top = json(&run(&["top", "--once", "--json"]));
        let pid = &top["programs"][0]["workers"][0]["pid"];
        assert_eq!(serde_json::json!([pid]), serde_json::json!(workers));

        let recycled = json(&run(&["recycle", "/app", "--json"]));
        assert_eq!(recycled["pids"], serde_json::json!(workers));

        let (old, others) = (hob.server(), other.server());
        done(&run(&["upgrade"]));
        assert!(!hob.servers().iter().all(|server| *server == old));
        assert_eq!(other.servers(), [others]);
        assert_eq!(get(hob.port(), "/app").unwrap().text(), "x");
    }
    let [(first, mut one), (second, two)] = servers;
    done(&place.run(&["stop", "--config", &first]));
    assert_eq!(one.exit_code(), Some(0));
    let texts = [first.as_str(), "these run:", second.as_str()];
    refused(&place.run(&["stop", "--config", &first]), 3, &texts);
    assert_eq!(get(two.port(), "/app").unwrap().text(), "x");
    two.stop();
}

#[test]
fn without_a_config_the_one_of_the_folder_or_the_only_one_is_meant() {
    let place = Place::new();
    let [(first, one), (second, two)] = two(&place);
    let commands: [&[&str]; 8] = [
        &["status"],
        &["reload"],
        &["upgrade"],
        &["stop"],
        &["recycle", "/app"],
        &["top", "--once"],
        &["history"],
        &["watch"],
    ];
    let own = |file: &str| format!("--config {}", place.path(file).display());
    for arguments in commands {
        let (one, two) = (own(&first), own(&second));
        let texts = ["several hobs run", one.as_str(), two.as_str()];
        refused(&place.run(arguments), 2, &texts);
    }
    for (file, hob) in [(&first, &one), (&second, &two)] {
        let folder = place.path(file).parent().unwrap().to_owned();
        let mut status = place.command();
        status.current_dir(folder).args(["status", "--json"]);
        let told = json(&status.output().unwrap());
        assert_eq!(told["keeper"]["pid"], hob.pid());
    }
    two.stop();
    assert_eq!(place.status()["keeper"]["pid"], one.pid());
    // In the folder of a config that nobody serves, it is said whom the answer is of.
    let mut status = place.command();
    status.current_dir(place.path("two")).arg("status");
    let text = done(&status.output().unwrap());
    assert!(
        text.contains("no hob runs with ./hob.toml; this is about the only one"),
        "{text}"
    );
    one.stop();
    refused(&place.run(&["status"]), 3, &["`hob serve` starts one"]);
}

#[test]
fn links_and_other_ways_to_write_a_path_lead_to_the_same_server() {
    let place = Place::new();
    let [(first, one), (_, two)] = two(&place);
    std::os::unix::fs::symlink(place.path(&first), place.path("link.toml")).unwrap();
    std::os::unix::fs::symlink(place.path("one"), place.path("linked")).unwrap();
    let absolute = place.path(&first).display().to_string();
    let ways = [
        "link.toml",
        "linked/hob.toml",
        "two/../one/hob.toml",
        "./one/hob.toml",
    ];
    for way in ways.into_iter().chain([absolute.as_str()]) {
        let told = json(&place.run(&["status", "--json", "--config", way]));
        assert_eq!(told["keeper"]["pid"], one.pid(), "{way}");
    }
    let second = place.run(&["serve", "--config", "link.toml"]);
    refused(&second, 1, &["a hob serves this config already"]);

    // Started by a link that leads elsewhere later, it reads what is there now.
    two.stop();
    std::os::unix::fs::symlink(place.path("two"), place.path("current")).unwrap();
    let linked = start(&place, "current/hob.toml");
    add(&place, "three");
    std::fs::remove_file(place.path("current")).unwrap();
    std::os::unix::fs::symlink(place.path("three"), place.path("current")).unwrap();
    done(&place.run(&["reload", "--config", "current/hob.toml"]));
    let told = json(&place.run(&["status", "--json", "--config", "three/hob.toml"]));
    assert_eq!(told["keeper"]["pid"], linked.pid());
    refused(
        &place.run(&["status", "--config", "two/hob.toml"]),
        3,
        &["no hob runs with"],
    );
    one.stop();
    linked.stop();
}

#[test]
fn of_one_config_a_second_server_needs_a_socket_of_its_own() {
    let place = Place::new();
    let hob = place.serve_config("");
    let output = place.run(&["serve", "--config", "hob.toml"]);
    let pid = format!("process {}", hob.pid());
    let config = place.path("hob.toml").display().to_string();
    let stop = format!("`hob stop --config {config}`");
    let texts = [
        "a hob serves this config already",
        &pid,
        &config,
        &stop,
        "--control PATH",
    ];
    refused(&output, 1, &texts);

    let socket = place.path("run/hob/second").display().to_string();
    let second = place.serve(&["--config", "hob.toml", "--control", &socket]);
    let text = refused(
        &place.run(&["reload", "--config", "hob.toml"]),
        2,
        &["several hobs run with hob.toml; say which:"],
    );
    assert!(
        text.contains(&format!("--control {socket}  (process {}", second.pid())),
        "{text}"
    );
    assert!(text.contains(&format!("(process {}", hob.pid())), "{text}");
    let told = json(&place.run(&["status", "--json", "--control", &socket]));
    assert_eq!(told["keeper"]["pid"], second.pid());
    second.stop();
    hob.stop();
    place.serve_config("").stop();
}

#[test]
fn folders_are_served_and_reached_without_a_config() {
    let place = Place::new();
    place.folder("other");
    let one = place.serve(&["site", "--listen", "0"]);
    let two = place.serve(&["other", "--listen", "0"]);
    for (folder, hob) in [("site", &one), ("other/", &two)] {
        let told = json(&place.run(&["status", "--json", "--config", folder]));
        assert_eq!(told["keeper"]["pid"], hob.pid(), "{folder}");
        assert_eq!(told["config"], Value::Null);
    }
    let again = place.serve(&["site", "--listen", "0"]);
    refused(
        &place.run(&["stop", "--config", "site"]),
        2,
        &["several hobs run with site"],
    );
    let texts = ["no hob runs with run; `hob serve run` starts one"];
    refused(&place.run(&["stop", "--config", "run"]), 3, &texts);
    for hob in [one, two, again] {
        hob.stop();
    }
}

#[test]
fn list_is_what_the_schema_says_and_has_no_dead_ones() {
    let place = Place::new();
    assert_eq!(listed(&place), [] as [Value; 0]);
    assert_eq!(done(&place.run(&["servers"])), "none\n");
    let [(first, mut one), (second, two)] = two(&place);
    let folder = place.serve(&["site", "--listen", "0", "--control", "off"]);
    done(&place.run(&["reload", "--config", &second]));

    let told = json(&place.run(&["servers", "--json"]));
    let schema = json(&place.run(&["servers", "--schema"]));
    schema::conforms(&told, &schema, &schema, "");
    let by_pid = |hob: &Hob| {
        let pid = hob.pid();
        listed(&place)
            .into_iter()
            .find(|server| server["pid"] == pid)
    };
    let server = by_pid(&two).unwrap();
    let port = two.own_port();
    let facts = serde_json::json!({
        "config": place.path(&second),
        "folder": null,
        "addresses": [format!("127.0.0.1:{port}")],
        "version": env!("CARGO_PKG_VERSION"),
        "generation": 2,
    });
    for (name, value) in facts.as_object().unwrap() {
        match name.as_str() {
            // Where tests run over other protocols there are more listeners.
            "addresses" => {
                let has = server[name].as_array().unwrap();
                assert!(has.contains(&value[0]), "{server}");
            }
            _ => assert_eq!(&server[name], value, "{server}"),
        }
    }
    let socket = server["control"].as_str().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode;
    assert_eq!(
        mode(&std::fs::metadata(socket).unwrap().permissions()) & 0o777,
        0o600
    );
    let without = by_pid(&folder).unwrap();
    assert_eq!(
        (&without["control"], &without["config"]),
        (&Value::Null, &Value::Null)
    );
    let texts = ["has no control socket"];
    refused(&place.run(&["stop", "--config", "site"]), 3, &texts);
    let table = done(&place.run(&["servers"]));
    assert!(
        table.contains(&two.pid().to_string()) && table.contains(&second),
        "{table}"
    );

    one.signal(Signal::KILL);
    one.exit_code();
    assert_eq!(by_pid(&one), None);
    assert_eq!(listed(&place).len(), 2);
    refused(
        &place.run(&["reload", "--config", &first]),
        3,
        &["no hob runs with"],
    );
    let again = start(&place, &first);
    assert_eq!(generation(&place, &first), 1);
    for hob in [again, two, folder] {
        hob.stop();
    }
    assert_eq!(listed(&place), [] as [Value; 0]);
    let left: Vec<_> = std::fs::read_dir(place.path("run/hob"))
        .unwrap()
        .flatten()
        .collect();
    let left = left
        .iter()
        .map(|entry| entry.file_name().into_string().unwrap());
    let is_ours = |name: &String| name.ends_with(".server") || name.ends_with(".sock");
    assert_eq!(left.filter(is_ours).collect::<Vec<_>>(), [] as [String; 0]);
}

#[test]
fn control_may_change_over_a_reload_and_an_upgrade() {
    let place = Place::new();
    let hob = place.serve_config("");
    let control = || listed(&place)[0]["control"].as_str().unwrap().to_owned();
    let first = control();
    for name in ["a.sock", "b.sock"] {
        let before = control();
        place.write_config(&format!("control = \"run/hob/{name}\""), "site");
        let text = done(&place.run(&["reload", "--config", "hob.toml"]));
        assert!(
            text.contains("`hob upgrade` or a restart applies: control"),
            "{text}"
        );
        assert_eq!(control(), before);
        done(&place.run(&["upgrade", "--config", "hob.toml"]));
        let now = place.path("run/hob").join(name);
        assert_eq!(control(), now.display().to_string());
        assert!(now.exists() && !std::path::Path::new(&before).exists());
        let told = json(&place.run(&["status", "--json", "--config", "hob.toml"]));
        assert_eq!(told["keeper"]["pid"], hob.pid());
    }
    // A place that cannot be had: all stays as it was.
    std::fs::write(place.path("taken"), "mine").unwrap();
    place.write_config("control = \"taken\"", "site");
    let before = control();
    let output = place.run(&["upgrade", "--config", "hob.toml"]);
    refused(&output, 1, &["no control socket at"]);
    assert_eq!(control(), before);
    done(&place.run(&["status", "--config", "hob.toml"]));
    // And back to its own.
    place.write_config("", "site");
    done(&place.run(&["upgrade", "--config", "hob.toml"]));
    assert_eq!(control(), first);
    place.write_config("control = \"off\"", "site");
    done(&place.run(&["upgrade", "--config", "hob.toml"]));
    assert_eq!(listed(&place)[0]["control"], Value::Null);
    hob.stop();
}

#[test]
fn commands_that_stay_follow_a_control_socket_that_moves() {
    let place = Place::new();
    let hob = place.serve_config("");
    // One that says nothing any more is ended.
    let limit = DEADLINE.as_secs().to_string();
    let begin = |arguments: &[&str]| {
        let mut command = place.command_of("timeout".as_ref());
        command
            .arg(&limit)
            .arg(place.path("hob"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut top = begin(&["top", "--json", "--delay", "100ms"]);
    let mut looks = BufReader::new(top.stdout.take().unwrap()).lines();
    let mut watch = begin(&["watch", "--json", "path=/hello.txt"]);
    let mut events = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut told = BufReader::new(watch.stderr.take().unwrap()).lines();
    let mut wait_for = |text: &str| assert!(told.any(|line| line.unwrap().contains(text)));
    looks.next().unwrap().unwrap();
    wait_for("watching;");
    place.write_config("control = \"run/hob/moved.sock\"", "site");
    done(&place.run(&["upgrade", "--config", "hob.toml"]));
    // Of the server that came with the upgrade: the socket of the one before is gone.
    wait_for("watching again");
    get(hob.port(), "/hello.txt").unwrap();
    let event: Value = serde_json::from_str(&events.next().unwrap().unwrap()).unwrap();
    assert!(event.is_object(), "{event}");
    let now = UNIX_EPOCH.elapsed().unwrap().as_millis();
    let is_later = |line: String| {
        let look: Value = serde_json::from_str(&line).unwrap();
        u128::from(look["overview"]["now_unix_ms"].as_u64().unwrap()) > now
    };
    assert!(looks.any(|line| is_later(line.unwrap())));
    for mut process in [top, watch] {
        send_signal(process.id(), Signal::TERM);
        process.wait().unwrap();
    }
    hob.stop();
}

#[test]
fn server_that_is_listed_elsewhere_is_reached_by_the_socket_of_its_config() {
    let place = Place::new();
    let keys = "control = \"run/hob/named.sock\"";
    let hob = place.serve_config(keys);
    place.write("other.toml", &config(keys, "site"));
    let run = |file: &str| {
        let mut command = place.command();
        command.env("XDG_RUNTIME_DIR", place.path("site"));
        command.args(["status", "--json", "--config", file]);
        command.output().unwrap()
    };
    assert_eq!(json(&run("hob.toml"))["keeper"]["pid"], hob.pid());
    let serves = format!("serves {}", place.path("hob.toml").display());
    refused(
        &run("other.toml"),
        3,
        &["the control socket of other.toml", &serves],
    );
    refused(
        &place.run(&["reload", "--config", "other.toml"]),
        3,
        &[&serves],
    );
    hob.stop();
    refused(&run("hob.toml"), 3, &["no hob runs with hob.toml"]);
    refused(&run("missing.toml"), 2, &["missing.toml"]);
}

#[test]
fn who_has_the_address_is_told_if_it_is_a_hob() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    drop(taken);
    let hob = place.serve(&["site", "--listen", &address]);
    place.folder("other");
    let site = place.path("site").display().to_string();
    let pid = format!("process {}", hob.pid());
    let stop = format!("`hob stop --config {site}` ends it");
    let texts = ["another hob does", &address, &pid, &site, &stop];
    refused(
        &place.run(&["serve", "other", "--listen", &address]),
        1,
        &texts,
    );
    let port = address.rsplit(':').next().unwrap();
    let any = format!("0.0.0.0:{port}");
    refused(
        &place.run(&["serve", "other", "--listen", &any]),
        1,
        &texts[2..],
    );
    // The same over a reload.
    place.write("hob.toml", &config("", "other"));
    let second = place.serve(&["--config", "hob.toml"]);
    let text = format!("[[listen]]\naddress = \"{address}\"\n[[site]]\nroot = \"other\"\n");
    place.write("hob.toml", &text);
    refused(&place.run(&["reload", "--config", "hob.toml"]), 1, &texts);
    assert_eq!(generation(&place, "hob.toml"), 1);
    second.stop();
    hob.stop();
}

#[test]
fn socket_of_another_user_is_told_nothing() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let place = Place::new();
    let path = place.path("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&path, mode).unwrap();
    let output = place.run(&["stop", "--control", path.to_str().unwrap()]);
    refused(&output, 3, &["belongs to user 0: nothing was asked"]);
    let (mut asked, _) = listener.accept().unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut asked, &mut text).unwrap();
    assert_eq!(text, "");
}

#[test]
fn root_sees_the_servers_of_all_users() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.env_remove("XDG_RUNTIME_DIR");
    command.args(["serve", "site", "--listen", "0"]);
    let hob = Hob::start(command);
    hob.wait_for("listening on ");
    let root = Place::for_user(User::Same);
    let server = listed(&root)
        .into_iter()
        .find(|server| server["pid"] == hob.pid());
    let server = server.unwrap();
    assert_ne!(server["user_id"], 0);
    let socket = server["control"].as_str().unwrap();
    assert!(socket.starts_with("/tmp/hob-"), "{socket}");
    let folder = place.path("site").display().to_string();
    let told = json(&root.run(&["status", "--json", "--config", &folder]));
    assert_eq!(told["keeper"]["pid"], hob.pid());
    assert!(!children_of(hob.pid()).is_empty());
    hob.stop();
}

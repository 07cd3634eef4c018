//! Every answer of the API against its published schema.

use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use super::{schema, some_requests, told, wait_for};
use crate::harness::client::{Answer, Connection, ask};
use crate::harness::{Hob, Place, config};

/// A program that stays and speaks lines.
const PROGRAM: &str = "#!/bin/sh
while IFS= read -r beginning; do
  while IFS= read -r line && [ -n \"$line\" ]; do :; done
  printf 'Content-Type: text/plain\\n\\nanswered\\n%s\\n' \"$CGIPLUSEOF\"
done <\"$CGIPLUSIN\"
";
const SCRIPT: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\nanswered\\n'\n";
const ROUTES: &str = "
[[site.route]]
path = \"/app/*\"
resident = { run = [\"./app.sh\"], carrier = \"lines\", workers = { min = 1, max = 1 } }

[[site.route]]
path = \"/cgi/*\"
cgi = { dir = \"cgi\", sandbox = { execute = [\"/\"] }, cgroup = { pids = 64 } }

[[site.route]]
path = \"/elsewhere/*\"
proxy = \"http://127.0.0.1:1\"

[admin]
address = \"127.0.0.1:0\"
tls = true
";

/// A server that has something of everything to tell of.
fn serve(place: &Place) -> Hob {
    for folder in ["cgi", "logs"] {
        place.folder(folder);
    }
    for (name, text) in [("app.sh", PROGRAM), ("cgi/a.sh", SCRIPT)] {
        place.script(name, text);
    }
    let log = "default_log = \"main\"\n[[log]]\nname = \"main\"\nfile = \"logs/access\"\n";
    place.write("hob.toml", &format!("{}{ROUTES}", config(log, "site")));
    // Who serves owns the config, so that it can be changed.
    let owner = place.path("run").metadata().unwrap();
    let path = place.path("hob.toml");
    std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
    place.serve(&["--config", "hob.toml"])
}

/// Target and body of the request that an answer is of; its status.
fn request(place: &Place, name: &str, path: &str) -> (String, Value, u16) {
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    let (target, body, status) = match name {
        "request" => {
            let find = |told: &Value| text_of(&told["requests"][0]["id"]);
            let id = wait_for(place, "/v1/history", find);
            (format!("/v1/history/{id}"), Value::Null, 200)
        }
        "log" => ("/v1/logs/0".to_owned(), Value::Null, 200),
        "explain" => (format!("{path}?url=/hello.txt"), Value::Null, 200),
        "operation" => {
            let pool = |told: &Value| told["programs"][0].clone();
            let is_idle = |told: &Value| pool(told)["workers"][0]["state"] == "idle";
            let find = |told: &Value| text_of(&pool(told)["name"]).filter(|_| is_idle(told));
            let name = wait_for(place, "/v1/programs", find);
            (path.to_owned(), json!({ "name": name }), 200)
        }
        "member" => {
            let upstream = told(place, "/v1/programs")["upstreams"][0].clone();
            let member = &upstream["members"][0]["address"];
            (
                path.to_owned(),
                json!({ "name": upstream["name"], "member": member }),
                200,
            )
        }
        "ban" => (format!("{path}?client=192.0.2.7"), Value::Null, 200),
        "purge" => (path.to_owned(), json!({ "all": true }), 200),
        "change" | "difference" | "rejection" | "verdict" => {
            let file = told(place, "/v1/config")["files"][0].clone();
            let before = text_of(&file["text"]).unwrap();
            let (text, status) = match name {
                "rejection" => (format!("drian = 1\n{before}"), 422),
                "verdict" => (format!("drian = 1\n{before}"), 200),
                _ => (format!("{before}# more\n"), 200),
            };
            let body = json!({ "path": file["path"], "text": text, "base_hash": file["hash"] });
            (path.to_owned(), body, status)
        }
        _ => (path.to_owned(), Value::Null, 200),
    };
    (target, body, status)
}

fn answer(place: &Place, method: &str, target: &str, body: &Value) -> Answer {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let socket = place.path("run/hob/control.sock");
    let mut connection = Connection::open_unix(&socket).unwrap();
    let fields = format!("Content-Length: {}\r\n", body.len());
    connection.send_ask(method, target, &fields);
    connection.send(body.as_bytes()).unwrap();
    connection.read_last(method)
}

#[test]
fn answers_are_what_their_schemas_say() {
    let place = Place::new();
    let hob = serve(&place);
    some_requests(&place, &hob);
    for path in ["/app/x", "/cgi/a.sh"] {
        assert_eq!(ask(hob.port(), "GET", path, "").status, 200, "{path}");
    }
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&place.run(arguments).stdout).unwrap()
    };
    let of_status = json(&["status", "--schema"]);
    let state = json(&["status", "--json"]);
    schema::conforms(&state, &of_status, &of_status, "");
    let all = json(&["check", "--answers"]);
    for (name, property) in all["properties"].as_object().unwrap() {
        // It begins with the request, as in `GET /v1/status`.
        let says = property["description"].as_str().unwrap();
        let mut words = says.trim_start_matches('`').split([' ', '`']);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (target, body, status) = request(&place, name, path);
        let answer = answer(&place, method, &target, &body);
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
        let told = serde_json::from_slice(&answer.body).unwrap();
        schema::conforms(&told, property, &all, name);
    }
    for url in ["/app/x", "/cgi/a.sh", "/missing", "/../x"] {
        let told = told(&place, &format!("/v1/explain?url={url}"));
        schema::conforms(&told, &all["properties"]["explain"], &all, url);
    }
    hob.stop();
}

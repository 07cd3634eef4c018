//! Several results together: shards of one plan that become one, and two that are compared.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Place, text_of};
use super::schema::conforms;
use super::server::Server;
use super::{command, hello, result, said};

/// Two shards of a plan, run at the same time, and the files with their results.
fn shards(place: &Place, server: &Server, plan: &[&str]) -> Vec<String> {
    std::fs::create_dir(place.path("shards")).unwrap();
    let url = server.url();
    let start = ["shards/1", "shards/2"]
        .iter()
        .zip(["1/2", "2/2"])
        .map(|(name, shard)| {
            let mut command =
                command(&[&[url.as_str(), "--json", "--shard", shard], plan].concat());
            (
                place.path(name),
                command.stdout(Stdio::piped()).spawn().unwrap(),
            )
        });
    let started: Vec<_> = start.collect();
    let mut files = Vec::new();
    for (path, child) in started {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
        std::fs::write(&path, &output.stdout).unwrap();
        files.push(path.display().to_string());
    }
    files
}

#[test]
fn shards_make_one_result_with_all_times() {
    let server = hello();
    let place = Place::new();
    let plan = [
        "--rate",
        "400",
        "-n",
        "101",
        "-c",
        "21",
        "--fail-if",
        "p99>1h",
    ];
    let files = shards(&place, &server, &plan);
    let page = place.path("merged.html");
    let html = ["--html", page.to_str().unwrap()];
    let merged = result(0, &[&["merge", &files[0], &files[1]], &html[..]].concat());
    let parts: Vec<Value> = files
        .iter()
        .map(|file| serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap())
        .collect();
    let sent: Vec<&Value> = parts.iter().map(|part| &part["requests"]["due"]).collect();
    assert_eq!(sent, [51, 50]);
    assert_eq!(merged["requests"]["good"], 101);
    let opened = |one: &Value| one["connections"]["opened"].as_u64().unwrap();
    assert_eq!(opened(&merged), parts.iter().map(opened).sum::<u64>());
    assert_eq!(merged["latency"]["response"]["count"], 101);
    assert_eq!(merged["shard"], "2 of 2");
    assert_eq!(merged["status"], json!([{ "code": 200, "count": 101 }]));
    let of = |value: &Value, field: &str| value["latency"]["response"][field].as_f64().unwrap();
    let most = parts
        .iter()
        .map(|part| of(part, "max_us"))
        .fold(0.0, f64::max);
    assert_eq!(of(&merged, "max_us"), most);
    let by_second = merged["series"]["answered"].as_array().unwrap().iter();
    assert_eq!(by_second.filter_map(Value::as_u64).sum::<u64>(), 101);
    assert_eq!(merged["thresholds"][0]["crossed"], false);
    let schema: Value = serde_json::from_str(&said(0, &["--schema"])).unwrap();
    conforms(&merged, &schema, &schema, "");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("shard 2 of 2"), "{page}");
    // One part alone is no whole, and says so.
    let text = said(0, &["merge", &files[0]]);
    assert!(
        text.contains("doubtful: 1 of 2 shards are missing"),
        "{text}"
    );
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let server = hello();
    let place = Place::new();
    let files = shards(&place, &server, &["-n", "10", "-c", "2"]);
    let (one, other) = (files[0].as_str(), files[1].as_str());
    let change = |from: &str, name: &str, edit: &dyn Fn(&mut Value)| {
        let mut value: Value =
            serde_json::from_str(&std::fs::read_to_string(from).unwrap()).unwrap();
        edit(&mut value);
        place.write(name, &value.to_string());
        place.path(name).display().to_string()
    };
    let plan = change(other, "plan", &|value| {
        value["plan"]["connections"] = json!(3)
    });
    let whole = change(other, "whole", &|value| value["shard"] = Value::Null);
    let third = change(other, "third", &|value| value["shard"] = json!("2/3"));
    let newer = change(other, "newer", &|value| value["format"] = json!(1000));
    let broken = change(other, "broken", &|value| {
        value["latency"]["response"]["histogram"] = json!("HISTFAAA");
    });
    place.write("text", "hello");
    let text = place.path("text").display().to_string();
    for (files, says) in [
        ([one, one], "shard 1/2 is there twice"),
        ([one, &plan], "different plans: connections is 2 and 3"),
        ([one, &whole], "result 2 is not of one shard"),
        ([one, &third], "are not parts of one whole"),
        ([one, &newer], "its format 1000 is newer than 1"),
        ([one, &broken], "cannot be read"),
        ([one, &text], "this is no JSON"),
        ([one, "/nonexistent"], "/nonexistent: No such file"),
    ] {
        let found = said(2, &["merge", files[0], files[1]]);
        assert!(found.contains(says), "{says}: {found}");
    }
}

#[test]
fn runs_begin_when_they_are_told_to() {
    let server = hello();
    let url = server.url();
    let wrong = said(2, &[&url, "--start-at", "2020-01-31T12:00:00Z"]);
    assert!(wrong.contains("the moment to begin was "), "{wrong}");
    let now = std::time::SystemTime::now() + Duration::from_millis(700);
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let moment = format!("{:.3}", now.as_secs_f64());
    let run = result(0, &[&url, "-n", "1", "-c", "1", "--start-at", &moment]);
    let begun = run["begun_at_ms"].as_u64().unwrap();
    assert!(
        begun >= now.as_millis() as u64 - 1,
        "{begun} is before {moment}"
    );
    for wrong in ["--shard=0/2", "--shard=3/2", "--start-at=soon"] {
        said(2, &[&url, wrong]);
    }
}

#[test]
fn results_are_told_apart_when_they_differ_more_than_they_vary() {
    let server = hello();
    let place = Place::new();
    let run = result(0, &[&server.url(), "-n", "100", "-c", "2"]);
    // Three runs each, with these rates: what is compared must not depend on this machine.
    let runs = |name: &str, rates: [u64; 3]| {
        let all = rates.map(|rate| {
            let mut run = run.clone();
            run["requests"]["good"] = json!(rate);
            run["elapsed_s"] = json!(1.0);
            run.to_string()
        });
        place.write(name, &all.join("\n"));
        place.path(name).display().to_string()
    };
    let before = runs("before", [1000, 1010, 990]);
    let faster = runs("faster", [1200, 1210, 1190]);
    let noisy = runs("noisy", [800, 1200, 1010]);
    let line = |after: &str, figure: &str| {
        let text = said(0, &["--compare", &before, after]);
        let line = text.lines().find(|line| line.starts_with(figure));
        line.unwrap_or_else(|| panic!("no {figure} in {text}"))
            .to_owned()
    };
    let rate = line(&faster, "rate");
    assert!(rate.contains("1,000/s    1,200/s   +20.0 %"), "{rate}");
    assert!(rate.ends_with(" faster"), "{rate}");
    assert!(line(&noisy, "rate").ends_with(" cannot be told apart"));
    assert!(line(&faster, "p50").ends_with(" cannot be told apart"));
    let failing = ["--fail-if", "rate<-10%"];
    let text = said(
        4,
        &[&["--compare", &faster, &before], &failing[..]].concat(),
    );
    assert!(
        text.contains("FAILED: rate<-10%\n") && text.contains(" slower\n"),
        "{text}"
    );
    said(
        0,
        &[&["--compare", &before, &faster], &failing[..]].concat(),
    );
    let told = result(0, &["--compare", &before, &faster]);
    assert!(told["method"].as_str().unwrap().contains("Welch"), "{told}");
    assert_eq!(told["figures"][0]["verdict"], "faster");
    assert!(
        told["figures"][0]["low_percent"].as_f64().unwrap() > 15.0,
        "{told}"
    );
    let schema: Value = serde_json::from_str(&said(0, &["--schema"])).unwrap();
    conforms(&told, &schema["$defs"]["comparison"], &schema, "");
}

#[test]
fn single_runs_are_compared_by_their_seconds() {
    let server = hello();
    let place = Place::new();
    let run = result(
        0,
        &[&server.url(), "-n", "100", "-c", "2", "--warm-up", "0s"],
    );
    // The same second ten times over, and ten times with half of the answers.
    let seconds = |name: &str, good: u64| {
        let mut run = run.clone();
        run["elapsed_s"] = json!(10.0);
        run["requests"]["good"] = json!(good * 10);
        for field in ["answered", "good", "failed"] {
            let count = if field == "failed" { 0 } else { good };
            run["series"][field] = json!(vec![count; 10]);
        }
        run["series"]["histograms"] = json!(vec![run["series"]["histograms"][0].clone(); 10]);
        place.write(name, &run.to_string());
        place.path(name).display().to_string()
    };
    let (whole, half) = (seconds("whole", 100), seconds("half", 50));
    let text = said(0, &["--compare", &whole, &half]);
    assert!(text.contains("bootstrap of blocks"), "{text}");
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(
        line("rate").contains("-50.0 % to -50.0 %") && line("rate").ends_with(" slower"),
        "{text}"
    );
    assert!(line("p99 ").ends_with(" cannot be told apart"), "{text}");
    place.write("short", &run.to_string());
    let short = place.path("short").display().to_string();
    let text = said(0, &["--compare", &short, &short]);
    assert!(text.contains("too few for an interval"), "{text}");
    assert!(
        !text.contains(" faster\n") && !text.contains(" slower\n"),
        "{text}"
    );
}

/// A result as a hob wrote it that did not know of lists, and did not tell all of a plan.
fn as_older(result: &Value) -> Value {
    let mut older = result.clone();
    let remove = |value: &mut Value, names: &[&str]| {
        let fields = value.as_object_mut().unwrap();
        names.iter().for_each(|name| drop(fields.remove(*name)));
    };
    remove(&mut older, &["fairness_urls", "replay"]);
    let names = [
        "weights",
        "seed",
        "headers",
        "body_bytes",
        "body_sha256",
        "list_sha256",
        "tls",
        "replay",
    ];
    remove(&mut older["plan"], &names);
    for row in older["urls"].as_array_mut().unwrap() {
        let names = [
            "name",
            "url_count",
            "method",
            "weight",
            "failures",
            "service",
        ];
        remove(row, &names);
    }
    older
}

#[test]
fn results_of_an_older_hob_are_read_as_ever() {
    let server = hello();
    let place = Place::new();
    let (a, b) = (format!("{}a", server.url()), format!("{}b", server.url()));
    let run = |shard: &str| {
        let more = ["-n", "40", "--rate", "1000", "-c", "4", "--shard", shard];
        result(0, &[&[a.as_str(), b.as_str()], &more[..]].concat())
    };
    let (new, other) = (run("1/2"), run("2/2"));
    place.write("old", &as_older(&new).to_string());
    place.write("new", &new.to_string());
    place.write("other", &as_older(&other).to_string());
    let [old, new, other] = ["old", "new", "other"].map(|name| place.path(name));
    let [old, new, other] = [&old, &new, &other].map(|path| path.to_str().unwrap());
    for files in [[old, new], [new, old]] {
        let text = said(0, &["--compare", files[0], files[1]]);
        assert!(!text.contains("plan"), "{text}");
    }
    for files in [[old, other], [new, other]] {
        let page = place.path("page.html");
        let html = ["--html", page.to_str().unwrap()];
        let merged = result(0, &[&["merge"], &files[..], &html[..]].concat());
        let answered = merged["urls"].as_array().unwrap().iter();
        let answered: Vec<&Value> = answered.map(|row| &row["answered"]).collect();
        assert_eq!(answered, [20, 20]);
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains(&b), "no {b}");
    }
}

#[test]
fn shards_of_a_list_make_one_result_and_those_of_another_list_do_not() {
    let server = hello();
    let place = Place::new();
    place.write("list", "/a weight=3 name=a expect=size=7\n/b name=b\n");
    let list = place.path("list");
    let plan = ["-n", "100", "-c", "4", "--urls", list.to_str().unwrap()];
    let files = shards(&place, &server, &plan);
    let merged = result(0, &["merge", &files[0], &files[1]]);
    let schema = said(0, &["--schema"]);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    conforms(&merged, &schema, &schema, "");
    let (a, b) = (&merged["urls"][0], &merged["urls"][1]);
    let [in_a, in_b] = [a, b].map(|row| row["answered"].as_u64().unwrap());
    assert_eq!(
        (in_a + in_b, &a["name"], &b["name"]),
        (100, &json!("a"), &json!("b"))
    );
    let failures = json!([{
        "kind": "size", "count": in_a, "first": "6 bytes instead of 7",
    }]);
    assert_eq!((&a["failures"], &b["failures"]), (&failures, &json!([])));
    assert_eq!(a["service"]["count"], in_a);
    // The same URLs and weights, but something else is expected.
    place.write("list", "/a weight=3 name=a\n/b name=b\n");
    let more = ["--shard", "2/2"];
    let other = result(
        0,
        &[&[server.url().as_str()], &plan[..], &more[..]].concat(),
    );
    place.write("other", &other.to_string());
    let other = place.path("other");
    let text = said(2, &["merge", &files[0], other.to_str().unwrap()]);
    assert!(text.contains("different plans: list_sha256 is "), "{text}");
}

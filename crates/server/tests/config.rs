//! Golden tests of the config: `tests/config/NAME.toml` in, `NAME.out` out.
//!
//! The answer is the normal form (and warnings, if any) of a config that is right, else its errors.
//! `UPDATE_GOLDEN=1` writes the answers instead of comparing them. The package's folder is shown as
//! `DIR`. The environment has `PORT=8080`, `ROOT=site`, `COUNT=3` and `YES=true`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hob_server::config::key::paths;
use hob_server::config::{
    Disk, Errors, Found, Handler, ListenAddress, Sources, TrustedDisk, load, load_with,
};

fn env(name: &str) -> Option<String> {
    let value = match name {
        "PORT" => "8080",
        "ROOT" => "site",
        "COUNT" => "3",
        "YES" => "true",
        _ => return None,
    };
    Some(value.to_owned())
}

/// Where the cases are, from the folder in which tests run: the package's.
const CASES: &str = "tests/config";

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(CASES)
        .expect("tests run in the package's folder")
        .map(|entry| entry.expect("the folder can be read").path());
    let mut cases: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// What a case answers.
fn answer(path: &Path) -> String {
    let loaded = Sources::read(path, &env).and_then(|sources| load(&sources));
    let text = match loaded {
        Ok((config, warnings)) => format!("{config}{warnings}"),
        Err(errors) => errors.to_string(),
    };
    text.replace(env!("CARGO_MANIFEST_DIR"), "DIR")
}

#[test]
fn each_config_gives_its_golden_answer() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let golden = case.with_extension("out");
        let answer = answer(&case);
        if update {
            fs::write(&golden, &answer).unwrap();
        } else if fs::read_to_string(&golden).unwrap_or_default() != answer {
            wrong.push(format!("--- {}\n{answer}", case.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "answers differ (UPDATE_GOLDEN=1 accepts):\n{}",
        wrong.join("\n")
    );
}

/// The paths of the keys a text sets.
fn keys_set(table: &dyn toml_edit::TableLike, prefix: &str, all: &mut BTreeSet<String>) {
    for (name, item) in table.iter() {
        let path = format!("{prefix}{name}");
        let below = format!("{path}.");
        all.insert(path);
        if let Some(list) = item.as_array_of_tables() {
            list.iter().for_each(|table| keys_set(table, &below, all));
        } else if let Some(table) = item.as_table_like() {
            keys_set(table, &below, all);
        }
    }
}

#[test]
fn each_key_is_set_in_a_golden_config_that_is_right() {
    let mut set = BTreeSet::new();
    for case in cases() {
        let golden = fs::read_to_string(case.with_extension("out")).unwrap_or_default();
        let text = fs::read_to_string(&case).unwrap();
        if !golden.starts_with("threads = ") {
            continue;
        }
        keys_set(
            toml_edit::Document::parse(text).unwrap().as_table(),
            "",
            &mut set,
        );
    }
    let missing: Vec<_> = paths()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| !set.contains(path))
        .collect();
    assert!(missing.is_empty(), "no golden config sets {missing:?}");
}

fn from_text(text: &str) -> Result<Sources, Errors> {
    Sources::from_text("test.toml", text, Path::new("/srv"), &env)
}

/// The errors of a text, on a disk that has everything.
fn errors_of(text: &str) -> String {
    match from_text(text).and_then(|sources| load_with(&sources, &TrustedDisk)) {
        Ok(_) => String::new(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn each_example_of_the_schema_is_accepted() {
    for (path, key) in paths() {
        if key.kind.table().is_some() || path == "include" {
            continue;
        }
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        let before = match table {
            "" => "",
            "log" => "[[log]]\n",
            "listen" => "[[listen]]\n",
            "site" => "[[site]]\n",
            "site.route" => "[[site]]\n[[site.route]]\n",
            "listen.tls" => "[[listen]]\n[listen.tls]\n",
            "site.tls" => "[[site]]\n[site.tls]\n",
            "site.hsts" => "[[site]]\nhttps_only = true\n[site.hsts]\n",
            "limits" | "cache" | "names" | "history" | "activity" | "admin" | "admin.tls" => {
                &format!("[{table}]\n")
            }
            "admin.user" => "[[admin.user]]\n",
            table if table.starts_with("acme") => &format!("[{table}]\n"),
            _ => &format!("[[site]]\n[[site.route]]\n[{table}]\n"),
        };
        let after = match path.as_str() {
            "site.route.path" => "redirect = \"/\"\n",
            "site.route.rewrite" => "path = \"/{name}\"\n",
            "listen.tls.key" | "site.tls.key" | "admin.tls.key" => "certificate = \"a.pem\"\n",
            "site.tls.client" => "client_ca = \"ca.pem\"\n",
            "site.tls.client_ca" => "client = \"ask\"\n",
            "listen.v6only" => "address = \"[::]:1\"\n",
            _ => "",
        };
        let log = if table == "log" {
            ""
        } else {
            "[[log]]\nname = \"main\"\nstdout = true\n"
        };
        let text = format!(
            "# an example\n{before}{name} = {}\n{after}{log}",
            key.example
        );
        // What the case lacks beside the example is told on other lines.
        let line = before.lines().count() + 2;
        let loaded = from_text(&text).and_then(|sources| load_with(&sources, &TrustedDisk));
        for fault in loaded.err().iter().flat_map(Errors::faults) {
            assert_ne!(fault.place.line, line, "{path}: {}\n{text}", fault.message);
        }
    }
}

#[test]
fn texts_handed_over_load_to_the_same_config() {
    let text = "[[listen]]\naddress = \":${PORT}\"\n[[site]]\nroot = \"${ROOT}\"\n";
    let sources = from_text(text).unwrap();
    let received = Sources::decode(&sources.encode()).unwrap();
    let (config, _) = load_with(&received, &TrustedDisk).unwrap();
    assert_eq!(load_with(&sources, &TrustedDisk).unwrap().0, config);
    assert_eq!(
        config.listeners[0].address,
        ListenAddress::Tcp("[::]:8080".parse().unwrap())
    );
}

#[test]
fn quoted_text_means_itself() {
    for body in [
        "",
        "a \"b\" \\ c\n",
        "${PORT} $${PORT} $$$",
        "'''",
        "\u{7f}ä\t",
    ] {
        let quoted = Sources::quote(body);
        let text = format!("[[site]]\n[[site.route]]\npath = \"/\"\nrespond.body = {quoted}\n");
        let (config, _) = load(&from_text(&text).unwrap()).unwrap();
        let Handler::Respond(respond) = &config.sites[0].routes[0].handler else {
            panic!("{text}")
        };
        assert_eq!(respond.body, body);
    }
}

#[test]
fn files_are_read_once_even_when_they_include_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    write(
        "hob.toml",
        "include = [\"*.toml\", \"sub/b.toml\"]\n[[site]]\nroot = \"sub\"\n",
    );
    write("a.toml", "include = [\"sub/b.toml\"]\nnice = 1\n");
    write(
        "sub/b.toml",
        "include = [\"../hob.toml\", \"../a.toml\"]\ndrain = \"1s\"\n",
    );
    let sources = Sources::read(&dir.path().join("hob.toml"), &env).unwrap();
    assert_eq!(sources.names().count(), 3);
    fs::remove_file(dir.path().join("a.toml")).unwrap();
    let (config, _) = load(&sources).unwrap();
    assert_eq!((config.nice, config.drain.as_secs()), (1, 1));
}

#[test]
fn includes_that_go_too_deep_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for depth in 0..12 {
        let text = format!("include = [\"{}.toml\"]\n", depth + 1);
        fs::write(dir.path().join(format!("{depth}.toml")), text).unwrap();
    }
    let errors = Sources::read(&dir.path().join("0.toml"), &env)
        .unwrap_err()
        .to_string();
    assert!(
        errors.contains("8.toml:1:12: error: includes are more than 8 deep"),
        "{errors}"
    );
}

#[test]
fn main_file_that_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hob.toml");
    let told = |path: &Path| Sources::read(path, &env).unwrap_err().to_string();
    assert!(told(&path).contains("hob.toml: error: there is no such file"));
    fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
    assert!(told(&path).contains("the file is not UTF-8 (line 2)"));
    assert!(told(dir.path()).contains("the file cannot be read"));
}

/// A disk that has one folder, and one that is hidden.
struct Small;

impl Disk for Small {
    fn look(&self, path: &Path) -> Found {
        match path.to_str() {
            Some("/srv/site") => Found::Folder,
            Some("/srv/secret") => Found::Hidden("no permission".to_owned()),
            _ => Found::Nothing,
        }
    }
}

#[test]
fn folders_are_looked_up_from_the_folder_of_their_text() {
    let errors = |root: &str| {
        let sources = from_text(&format!("[[site]]\nroot = \"{root}\"\n")).unwrap();
        load_with(&sources, &Small)
            .err()
            .map(|errors| errors.faults()[0].message.clone())
    };
    assert_eq!(errors("site"), None);
    assert_eq!(errors("./site/"), None);
    assert_eq!(errors("/srv/site"), None);
    assert_eq!(
        errors("other"),
        Some("there is no folder /srv/other".into())
    );
    let hidden = "/srv/secret cannot be looked at: no permission";
    assert_eq!(errors("secret"), Some(hidden.into()));
}

#[test]
fn errors_are_told_to_programs_too() {
    let errors = load(&from_text("thread = 4\n[[site]]\nroot = 3\n").unwrap()).unwrap_err();
    let expected = serde_json::json!({ "errors": [
        {
            "file": "test.toml", "line": 1, "column": 1, "related": [],
            "message": "unknown key `thread` at the top level",
            "hint": "did you mean `threads`?",
        },
        {
            "file": "test.toml", "line": 3, "column": 8, "related": [],
            "message": "`root` is a path, not an integer",
            "hint": "write `root = \"site\"`, for example",
        },
    ]});
    assert_eq!(errors.to_json(), expected);
}

#[test]
fn ten_thousand_routes_load_and_each_is_checked() {
    let mut text = String::from("[[site]]\n");
    for index in 0..10_000 {
        text += &format!("[[site.route]]\npath = \"/api/r{index}/{{x}}\"\nrespond = {{}}\n");
    }
    text += "[[site.route]]\npath = \"/api/r7/seven\"\nrespond = {}\n";
    let errors = errors_of(&text);
    assert!(
        errors.starts_with("test.toml:30003:8: error: this route is never reached"),
        "{errors}"
    );
    assert!(errors.ends_with("1 error\n"));
}

/// A small generator of numbers (xorshift), so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// One random change: a piece removed, doubled, moved in from another text, or a character set.
fn mutate(text: &mut String, other: &str, dice: &mut Dice) {
    let mut cut = |text: &str, len_max: usize| {
        let starts: Vec<usize> = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .collect();
        let start = dice.below(starts.len());
        let end = (start + dice.below(len_max)).min(starts.len() - 1);
        starts[start]..starts[end]
    };
    let range = cut(text, 40);
    let piece = &other[cut(other, 60)];
    let odd = [
        "\"", "[", "]", "{", "}", "=", "\n", "'", "#", ".", "\u{0}", "ä", "${", "*", "-1", "\t",
    ];
    match dice.below(4) {
        0 => text.replace_range(range, ""),
        1 => text.insert_str(range.start, piece),
        2 => text.replace_range(range, odd[dice.below(odd.len())]),
        _ => text.insert_str(range.start, odd[dice.below(odd.len())]),
    }
}

#[test]
fn loading_never_panics_and_errors_always_print() {
    let texts: Vec<String> = cases()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut outcomes = [0, 0];
    for round in 0..2000 {
        let mut text = texts[dice.below(texts.len())].clone();
        for _ in 0..dice.below(4) {
            let other = &texts[dice.below(texts.len())];
            mutate(&mut text, other, &mut dice);
        }
        // Includes would lead out of the test.
        let text = text.replace("include", "inclose");
        match from_text(&text).and_then(|sources| load_with(&sources, &TrustedDisk)) {
            Ok((config, _)) => outcomes[usize::from(config.normal().is_empty())] += 1,
            Err(errors) => {
                assert!(!errors.faults().is_empty(), "round {round}:\n{text}");
                assert!(errors.to_string().contains("error"), "round {round}");
                outcomes[1] += 1;
            }
        }
    }
    assert!(
        outcomes.iter().all(|count| *count > 50),
        "one-sided: {outcomes:?}"
    );
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
    ] {
        assert!(errors_of(&text).contains("error"));
    }
}

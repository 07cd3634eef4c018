//! Golden tests of the config: `tests/config/NAME.toml` in, `NAME.out` out.
//!
//! The answer is what was built of a config that is right (and warnings, if any), else its errors.
//! `UPDATE_GOLDEN=1` writes the answers instead of comparing them. The package's folder is shown as
//! `DIR`. The environment has `PORT=8080`, `ROOT=site`, `COUNT=3` and `YES=true`.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hob_server::config::key::{Preset, SchemaKey, SchemaTable, ValueType, paths};
use hob_server::config::{
    Config, ConfigSources, Disk, Errors, Handler, ListenAddress, PathStatus, SCHEMA, TrustedDisk,
    load, load_with,
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

/// A text in which the package's folder, wherever it stands, is `DIR`.
fn without_folder(text: &str) -> String {
    text.replace(env!("CARGO_MANIFEST_DIR"), "DIR")
}

/// A config as its fields, those that fit on one line.
fn shown(config: &Config) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut open = Vec::new();
    // What fits must not depend on where the package stands.
    for line in without_folder(&format!("{config:#?}")).lines() {
        lines.push(line.to_owned());
        if line.ends_with(['(', '[', '{']) {
            open.push(lines.len() - 1);
        } else if line.trim_start().starts_with([')', ']', '}']) {
            let start = open.pop().expect("what closes was opened");
            let space = if line.contains('}') { " " } else { "" };
            let inner: Vec<_> = lines[start + 1..lines.len() - 1]
                .iter()
                .map(|line| line.trim_start())
                .collect();
            let inner = inner.join(" ");
            let inner = inner.trim_end_matches(',');
            let (head, end) = (&lines[start], line.trim_start());
            let whole = format!("{head}{space}{inner}{space}{end}");
            if whole.len() <= COLUMNS {
                lines.truncate(start);
                lines.push(whole);
            }
        }
    }
    lines.join("\n") + "\n"
}

/// What is no longer than this stands on one line of a golden answer.
const COLUMNS: usize = 100;

/// How the golden answer of a config that is right begins.
const RIGHT: &str = "Config {";

/// What a case answers.
fn answer(path: &Path) -> String {
    let loaded = ConfigSources::read(&SCHEMA, path, &env).and_then(|sources| load(&sources));
    without_folder(&match loaded {
        Ok((config, warnings)) => format!("{}{warnings}", shown(&config)),
        Err(errors) => errors.to_string(),
    })
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
        if !golden.starts_with(RIGHT) {
            continue;
        }
        keys_set(
            toml_edit::Document::parse(text).unwrap().as_table(),
            "",
            &mut set,
        );
    }
    let missing: Vec<_> = paths(&SCHEMA)
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| !set.contains(path))
        .collect();
    assert!(missing.is_empty(), "no golden config sets {missing:?}");
}

/// Where the values of keys stand in a text, with their entries of the schema.
fn values(
    table: &dyn toml_edit::TableLike,
    schema: &'static SchemaTable,
    prefix: &str,
    all: &mut Vec<(String, &'static SchemaKey, Range<usize>)>,
) {
    for (name, item) in table.iter() {
        let key = schema.key(name).expect("the config is right");
        let path = format!("{prefix}{name}");
        let below = format!("{path}.");
        match (key.kind.table(), &key.kind) {
            (Some(inner), _) if item.is_array_of_tables() => {
                let tables = item.as_array_of_tables().into_iter().flatten();
                tables.for_each(|table| values(table, inner, &below, all));
            }
            (Some(inner), _) if item.is_table_like() => {
                let table = item.as_table_like().into_iter();
                table.for_each(|table| values(table, inner, &below, all));
            }
            (_, ValueType::Map(_)) => {
                let entries = item.as_table_like().into_iter().flat_map(|map| map.iter());
                let spans = entries.filter_map(|(_, item)| item.span());
                all.extend(spans.map(|span| (path.clone(), key, span)));
            }
            _ => all.extend(item.span().map(|span| (path, key, span))),
        }
    }
}

/// Values that a key of this kind may take, as TOML.
fn possible(kind: &ValueType) -> Vec<String> {
    let quoted = |words: &[&str]| words.iter().map(|word| format!("{word:?}")).collect();
    match kind {
        ValueType::Flag | ValueType::OrFlag(..) => vec!["true".to_owned(), "false".to_owned()],
        ValueType::Integer { min, max } => vec![min.to_string(), max.to_string(), "301".to_owned()],
        ValueType::Size { min, max } => vec![min.to_string(), max.to_string()],
        ValueType::Time { .. } => quoted(&["100ms", "3s", "2m", "3h", "9d"]),
        ValueType::Text | ValueType::Map(_) | ValueType::OrText(..) => quoted(&[
            "off",
            "other",
            "/other",
            "text/other",
            "077",
            "192.0.2.1",
            "https://other.test",
            "errors",
            "7%",
        ]),
        ValueType::Path => quoted(&["other"]),
        ValueType::Word(words) => quoted(words),
        ValueType::TextOrTexts => quoted(&["127.0.0.1:1", "http://127.0.0.1:1"]),
        ValueType::Texts | ValueType::Arguments => vec!["[]".to_owned(), "[\"other\"]".to_owned()],
        ValueType::Words(words) => words.iter().map(|word| format!("[{word:?}]")).collect(),
        ValueType::Cpus => vec!["[0]".to_owned(), "[1]".to_owned()],
        ValueType::OrWord(word, kind) => [quoted(&[word]), possible(kind)].concat(),
        ValueType::Table(_) | ValueType::Tables(_) => Vec::new(),
    }
}

/// Keys that cannot be another value alone: other texts come with the first, what names the log
/// with the second, a log that is not standard output is a file, and the last two are asked for by
/// name.
const NOT_ALONE: [&str; 5] = [
    "include",
    "log.name",
    "log.stdout",
    "snippet.name",
    "upstream.name",
];

/// Keys whose values no answer may tell.
const SECRET: [&str; 7] = [
    "admin.user.password",
    "upstream.sticky.secret",
    "site.route.fastcgi.sticky.secret",
    "site.route.scgi.sticky.secret",
    "site.route.uwsgi.sticky.secret",
    "site.route.proxy.sticky.secret",
    "site.route.remote.sticky.secret",
];

#[test]
fn golden_answers_differ_when_the_value_of_any_key_does() {
    let mut differ = BTreeSet::new();
    for case in cases() {
        let text = fs::read_to_string(&case).unwrap();
        let load = |text: &str| {
            let sources =
                ConfigSources::from_text(&SCHEMA, "test.toml", text, Path::new(CASES), &env)
                    .ok()?;
            load_with(&sources, &TrustedDisk).ok()
        };
        let Some((config, _)) = load(&text) else {
            continue;
        };
        let document = toml_edit::Document::parse(text.clone()).unwrap();
        let mut all = Vec::new();
        values(document.as_table(), SCHEMA.root, "", &mut all);
        // Where lines are fewer, places differ.
        all.retain(|(path, _, span)| !differ.contains(path) && !text[span.clone()].contains('\n'));
        for (path, key, span) in all {
            for value in [vec![key.example.to_owned()], possible(&key.kind)].concat() {
                let mut other = text.clone();
                other.replace_range(span.clone(), &value);
                let Some((other, _)) = load(&other).filter(|(other, _)| *other != config) else {
                    continue;
                };
                let is_told = !SECRET.contains(&path.as_str());
                assert_eq!(shown(&other) != shown(&config), is_told, "{path} = {value}");
                differ.insert(path);
                break;
            }
        }
    }
    let missing: Vec<_> = paths(&SCHEMA)
        .into_iter()
        .filter(|(path, key)| key.kind.table().is_none() && !differ.contains(path))
        .map(|(path, _)| path)
        .filter(|path| !NOT_ALONE.contains(&path.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "no value makes a difference: {missing:?}"
    );
}

#[test]
fn texts_of_the_reference_are_one_line_with_single_blanks() {
    for (path, key) in paths(&SCHEMA) {
        let table = key.kind.table().map_or("", |table| table.text);
        let (kind, preset) = (key.kind.to_string(), key.preset.to_string());
        for text in [key.text, table, &kind, &preset] {
            let words: Vec<_> = text.split_whitespace().collect();
            assert_eq!(words.join(" "), text, "{path}");
        }
    }
}

fn from_text(text: &str) -> Result<ConfigSources, Errors> {
    ConfigSources::from_text(&SCHEMA, "test.toml", text, Path::new("/srv"), &env)
}

/// The errors of a text, on a disk that has everything.
fn errors_of(text: &str) -> String {
    match from_text(text).and_then(|sources| load_with(&sources, &TrustedDisk)) {
        Ok(_) => String::new(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn each_example_of_the_schema_and_each_default_list_is_accepted() {
    for (path, key) in paths(&SCHEMA) {
        if key.kind.table().is_some() || path == "include" {
            continue;
        }
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        let before = match table {
            "" => "",
            "log" => "[[log]]\n",
            "listen" => "[[listen]]\n",
            "offer" => "[[offer]]\n",
            "site" => "[[site]]\n",
            "upstream" => "[[upstream]]\n",
            "auth" => "[[auth]]\n",
            "defaults" => "[defaults]\n",
            "snippet" => "[[snippet]]\n",
            table if table.starts_with("snippet.") => &format!("[[snippet]]\n[{table}]\n"),
            "ban" => "[[ban]]\n",
            "auth.forward" => "[[auth]]\n[auth.forward]\n",
            "upstream.member" => "[[upstream]]\n[[upstream.member]]\n",
            table if table.starts_with("upstream.") => &format!("[[upstream]]\n[{table}]\n"),
            "site.route" => "[[site]]\n[[site.route]]\n",
            "listen.tls" => "[[listen]]\n[listen.tls]\n",
            "site.tls" => "[[site]]\n[site.tls]\n",
            "site.hsts" => "[[site]]\nhttps_only = true\n[site.hsts]\n",
            "limits" | "cache" | "names" | "history" | "activity" | "admin" | "admin.tls" => {
                &format!("[{table}]\n")
            }
            "admin.user" => "[[admin.user]]\n",
            "site.route.when" => {
                "[[auth]]\nname = \"staff\"\nhtpasswd = \"a\"\ngroups = \"b\"\n[[site]]\n\
                 require = \"staff\"\n[[site.route]]\n[site.route.when]\n"
            }
            table if table.starts_with("acme") => &format!("[{table}]\n"),
            _ => &format!("[[site]]\n[[site.route]]\n[{table}]\n"),
        };
        let after = match path.as_str() {
            "auth.groups" | "auth.remember" => "htpasswd = \"a\"\n",
            "site.snippets" | "site.route.snippets" => {
                "[[snippet]]\nname = \"quiet\"\n[[snippet]]\nname = \"private\"\n"
            }
            "site.route.path" => "redirect = \"/\"\n",
            "site.route.rewrite" => "path = \"/{name}\"\n",
            "listen.tls.key" | "site.tls.key" | "defaults.tls.key" | "admin.tls.key" => {
                "certificate = \"a.pem\"\n"
            }
            "site.tls.client" | "defaults.tls.client" => "client_ca = \"ca.pem\"\n",
            "site.tls.client_ca" | "defaults.tls.client_ca" => "client = \"ask\"\n",
            "listen.offers" => "tls = \"a.pem\"\n",
            "offer.program" => {
                "[[site]]\n[[site.route]]\npath = \"/\"\nname = \"reports\"\ncgi = \"a\"\n"
            }
            "site.route.page.programs" => {
                "[[site.route]]\npath = \"/a\"\nname = \"rpt.pl\"\ncgi = \"a\"\n\
                 [[site.route]]\npath = \"/b\"\nname = \"stock\"\ncgi = \"b\"\n"
            }
            "site.require.groups" | "site.route.require.groups" => {
                "auth = \"staff\"\n[[auth]]\nname = \"staff\"\nhtpasswd = \"a\"\ngroups = \"b\"\n"
            }
            "site.access.certificates"
            | "site.route.access.certificates"
            | "defaults.access.certificates" => {
                "[site.tls]\nclient = \"ask\"\nclient_ca = \"ca.pem\"\n"
            }
            "listen.v6only" => "address = \"[::]:1\"\n",
            "site.https_only" => "[[listen]]\naddress = \":1\"\ntls = true\n",
            _ => "",
        };
        let log = if table == "log" {
            ""
        } else {
            "[[log]]\nname = \"main\"\nstdout = true\n"
        };
        // A list that nobody gives is not looked at when a config is read.
        let default = match key.preset {
            Preset::Texts(texts) if !texts.is_empty() => Some(format!("{texts:?}")),
            _ => None,
        };
        for value in std::iter::once(key.example).chain(default.as_deref()) {
            let top = match name {
                "country" => "countries = \"c.mmdb\"",
                _ => "# an example",
            };
            let text = format!("{top}\n{before}{name} = {value}\n{after}{log}");
            // What the case lacks beside the example is told on other lines.
            let line = before.lines().count() + 2;
            let loaded = from_text(&text).and_then(|sources| load_with(&sources, &TrustedDisk));
            for fault in loaded.err().iter().flat_map(Errors::faults) {
                assert_ne!(fault.place.line, line, "{path}: {}\n{text}", fault.message);
            }
        }
    }
}

#[test]
fn texts_handed_over_load_to_the_same_config() {
    let text = "[[listen]]\naddress = \":${PORT}\"\n[[site]]\nroot = \"${ROOT}\"\n";
    let sources = from_text(text).unwrap();
    let received = ConfigSources::decode(&sources.encode()).unwrap();
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
        let quoted = ConfigSources::quote(body);
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
    let sources = ConfigSources::read(&SCHEMA, &dir.path().join("hob.toml"), &env).unwrap();
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
    let errors = ConfigSources::read(&SCHEMA, &dir.path().join("0.toml"), &env)
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
    let told = |path: &Path| {
        ConfigSources::read(&SCHEMA, path, &env)
            .unwrap_err()
            .to_string()
    };
    assert!(told(&path).contains("hob.toml: error: there is no such file"));
    fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
    assert!(told(&path).contains("the file is not UTF-8 (line 2)"));
    assert!(told(dir.path()).contains("the file cannot be read"));
}

/// A disk that has one folder, and one that is hidden.
struct Small;

impl Disk for Small {
    fn look(&self, path: &Path) -> PathStatus {
        match path.to_str() {
            Some("/srv/site") => PathStatus::Folder,
            Some("/srv/secret") => PathStatus::Hidden("no permission".to_owned()),
            _ => PathStatus::Nothing,
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
            Ok(_) => outcomes[0] += 1,
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

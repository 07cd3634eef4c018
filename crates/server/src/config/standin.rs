//! A small reader in place of the real loader, with its signatures; goes when that arrives.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::{DocumentMut, Item};

use super::*;

/// The texts a config is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    name: String,
    text: String,
    base_dir: PathBuf,
}

/// Everything wrong with the sources.
#[derive(Clone, Debug)]
pub struct Errors(Vec<String>);

/// What is allowed and probably not meant.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Vec<String>);

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Errors {}

impl Errors {
    /// For programs.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "errors": self.0 })
    }
}

impl fmt::Display for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl Warnings {
    /// True when there is nothing to warn about.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For programs.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "warnings": self.0 })
    }
}

impl Sources {
    /// Reads a file.
    pub fn read(path: &Path, _env: &dyn Fn(&str) -> Option<String>) -> Result<Sources, Errors> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Errors(vec![format!("{}: {error}", path.display())]))?;
        let base_dir = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Sources {
            name: path.display().to_string(),
            text,
            base_dir,
        })
    }

    /// Takes a text.
    pub fn from_text(
        name: &str,
        text: &str,
        base_dir: &Path,
        _env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Sources, Errors> {
        let base_dir = base_dir.to_owned();
        Ok(Sources {
            name: name.to_owned(),
            text: text.to_owned(),
            base_dir,
        })
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        format!("{}\0{}\0{}", self.name, self.base_dir.display(), self.text).into_bytes()
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Sources> {
        let text = String::from_utf8_lossy(bytes);
        let mut parts = text.splitn(3, '\0');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), Some(base_dir), Some(text)) => {
                Sources::from_text(name, text, Path::new(base_dir), &|_| None).ok()
            }
            _ => None,
        }
    }
}

/// Builds a config.
pub fn load(sources: &Sources) -> Result<(Config, Warnings), Errors> {
    let wrong = |text: String| Errors(vec![format!("{}: {text}", sources.name)]);
    let document: DocumentMut = sources
        .text
        .parse()
        .map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
    let mut config = empty();
    let mut errors = Vec::new();
    for (key, item) in document.iter() {
        let text = item.as_str().map(str::to_owned);
        match key {
            "control" => config.control = text.map(|path| sources.base_dir.join(path)),
            "user" => config.user = text,
            "group" => config.group = text,
            "nice" => config.nice = item.as_integer().unwrap_or(0) as i32,
            "cpus" => {
                let list = item.as_array().into_iter().flatten();
                config.cpus = list
                    .filter_map(|cpu| cpu.as_integer())
                    .map(|cpu| cpu as usize)
                    .collect();
            }
            "drain" => match text.as_deref().and_then(duration) {
                Some(drain) => config.drain = drain,
                None => errors.push(format!(
                    "{}: drain is a duration such as \"10s\"",
                    sources.name
                )),
            },
            "listen" => read_listeners(item, sources, &mut config, &mut errors),
            "site" => read_sites(item, sources, &mut config),
            "log" => read_logs(item, sources, &mut config),
            _ => errors.push(format!("{}: unknown key `{key}`", sources.name)),
        }
    }
    if errors.is_empty() {
        Ok((config, Warnings::default()))
    } else {
        Err(Errors(errors))
    }
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

fn read_listeners(item: &Item, sources: &Sources, config: &mut Config, errors: &mut Vec<String>) {
    for table in item.as_array_of_tables().into_iter().flatten() {
        let address = table
            .get("address")
            .and_then(Item::as_str)
            .unwrap_or_default();
        let address = match address.split_once(':') {
            Some(("unix", path)) => ListenAddress::Unix(sources.base_dir.join(path)),
            Some(("systemd", name)) => ListenAddress::Inherited(name.to_owned()),
            _ => match address.parse() {
                Ok(address) => ListenAddress::Tcp(address),
                Err(_) => {
                    errors.push(format!("{}: `{address}` is no address", sources.name));
                    continue;
                }
            },
        };
        let bytes = |key| {
            table
                .get(key)
                .and_then(Item::as_integer)
                .map(|bytes| bytes as usize)
        };
        config.listeners.push(Listener {
            address,
            backlog: bytes("backlog").unwrap_or(1024) as u32,
            send_buffer: bytes("send_buffer"),
            receive_buffer: None,
            notsent_lowat: None,
            user_timeout: None,
            v6only: true,
            log: LogChoice::Inherit,
        });
    }
}

fn read_logs(item: &Item, sources: &Sources, config: &mut Config) {
    for table in item.as_array_of_tables().into_iter().flatten() {
        let file = table.get("file").and_then(Item::as_str).unwrap_or_default();
        config.logs.push(LogSettings {
            target: LogTarget::File(sources.base_dir.join(file)),
            format: "combined".to_owned(),
            rotate_bytes: table
                .get("rotate_bytes")
                .and_then(Item::as_integer)
                .unwrap_or(0) as u64,
            rotate_daily: false,
            keep: 3,
            compress: false,
        });
    }
}

fn read_sites(item: &Item, sources: &Sources, config: &mut Config) {
    for table in item.as_array_of_tables().into_iter().flatten() {
        let root = table.get("root").and_then(Item::as_str).unwrap_or(".");
        config.sites.push(Site {
            names: vec![],
            routes: vec![Route {
                path: "/*".to_owned(),
                handler: Handler::Respond(Respond {
                    status: 200,
                    content_type: String::new(),
                    body: sources.base_dir.join(root).display().to_string(),
                }),
                rewrite: None,
                body: 0,
                headers: vec![],
                log: LogChoice::Inherit,
                half_close: HalfClose::Cancel,
                place: Place::default(),
            }],
            error_pages: vec![],
            log: LogChoice::Inherit,
            place: Place::default(),
        });
    }
}

fn empty() -> Config {
    Config {
        threads: None,
        cpus: vec![],
        nice: 0,
        user: None,
        group: None,
        control: None,
        control_off: false,
        drain: Duration::from_secs(30),
        limits: Limits {
            target: 8192,
            head: 65536,
            headers: 100,
            head_time: Duration::from_secs(10),
            body_progress: Duration::from_secs(10),
            write_progress: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            linger: Duration::from_secs(2),
            connections: 10_000,
            connections_per_client: 0,
            body: 1 << 20,
        },
        cache: CacheSettings {
            bytes: 0,
            max_file: 0,
            recheck: Duration::from_secs(1),
        },
        logs: vec![],
        listeners: vec![],
        sites: vec![],
    }
}

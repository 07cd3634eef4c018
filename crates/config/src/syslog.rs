//! `log.syslog`: where a collector of syslog is, and how lines are sent to it.

use hob_trace::access_log::{SyslogAddress, SyslogSettings};

use super::address::Wrong;
use super::fault::Faults;
use super::schema::{FACILITIES, SEVERITIES};
use super::tree::Section;

/// Bytes of the name of who sends.
//= rfc5424#6
const APP_NAME_BYTES_MAX: usize = 48;
/// Bytes of the name of the machine.
const HOST_NAME_BYTES_MAX: usize = 255;
/// `sun_path` has 108 bytes, one of them for the NUL.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// What a log says about its collector; `None` where something is wrong with it.
pub(crate) fn build_syslog(section: &Section, faults: &mut Faults<'_>) -> Option<SyslogSettings> {
    // What is missing is told already.
    let given = section.given("to")?;
    let sources = faults.sources();
    let resolve = |path: &str| sources.resolve(given.spot.source, path);
    let address = match syslog_address(section.text("to"), resolve) {
        Ok(address) => address,
        Err((message, hint)) => {
            faults.error(section.spot("to"), message).hint(&hint);
            return None;
        }
    };
    let host_name = section.optional_text("host_name");
    let names = [
        (
            "app_name",
            Some(section.text("app_name")),
            APP_NAME_BYTES_MAX,
        ),
        ("host_name", host_name, HOST_NAME_BYTES_MAX),
    ];
    for (key, name, bytes_max) in names {
        if name.is_some_and(|name| !is_name(name, bytes_max)) {
            let message = format!("`{key}` is no name that a message of syslog can have");
            let hint = format!("1 to {bytes_max} letters, digits and signs of ASCII, no spaces");
            faults.error(section.spot(key), message).hint(&hint);
            return None;
        }
    }
    Some(SyslogSettings {
        address,
        facility: number(section.word("facility"), FACILITIES),
        severity: number(section.word("severity"), SEVERITIES),
        app_name: section.text("app_name").to_owned(),
        hostname: host_name.map(str::to_owned),
    })
}

/// The place of a word among those that there are, which is its number in messages.
fn number(word: &str, words: &[&str]) -> u8 {
    let place = words.iter().position(|known| *known == word);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or(0)
}

fn is_name(name: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// `unix:PATH`, `udp:HOST:PORT` or `tcp:HOST:PORT`. `resolve` makes a path of a relative one.
fn syslog_address(
    text: &str,
    resolve: impl Fn(&str) -> std::path::PathBuf,
) -> Result<SyslogAddress, Wrong> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = resolve(path);
        let len = path.as_os_str().len();
        if text.ends_with([':', '/']) || len > UNIX_PATH_BYTES_MAX {
            let hint =
                format!("write a path of at most {UNIX_PATH_BYTES_MAX} bytes: `unix:/dev/log`");
            return Err((format!("`{text}` names no socket file"), hint));
        }
        return Ok(SyslogAddress::Unix(path));
    }
    let (protocol, rest) = text.split_once(':').unwrap_or_default();
    let make: fn(String, u16) -> SyslogAddress = match protocol {
        "udp" => SyslogAddress::Udp,
        "tcp" => SyslogAddress::Tcp,
        _ => {
            let message = format!("`{text}` is no collector of syslog");
            let hint = "write `udp:HOST:PORT`, `tcp:HOST:PORT` or `unix:/dev/log`";
            return Err((message, hint.to_owned()));
        }
    };
    let wrong = |message: String| {
        let hint = format!("write `{protocol}:HOST:PORT`, such as `{protocol}:127.0.0.1:514`");
        Err((message, hint))
    };
    let Some((host, port)) = rest.rsplit_once(':') else {
        return wrong(format!("`{text}` has no port"));
    };
    let Some(port) = port.parse().ok().filter(|port| *port > 0) else {
        return wrong(format!("`{text}` has no right port: `{port}`"));
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            !host.is_empty() && host.bytes().all(is_allowed)
        }
    };
    match is_host {
        true => Ok(make(inner.unwrap_or(host).to_owned(), port)),
        false => wrong(format!("`{host}` is no host")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn read(text: &str) -> Result<SyslogAddress, Wrong> {
        syslog_address(text, |path| Path::new("/etc").join(path))
    }

    #[test]
    fn collectors_are_named_by_protocol_host_and_port() {
        for (text, meant) in [
            (
                "unix:/dev/log",
                SyslogAddress::Unix(PathBuf::from("/dev/log")),
            ),
            ("unix:log", SyslogAddress::Unix(PathBuf::from("/etc/log"))),
            (
                "udp:127.0.0.1:514",
                SyslogAddress::Udp("127.0.0.1".into(), 514),
            ),
            ("tcp:[::1]:601", SyslogAddress::Tcp("::1".into(), 601)),
            (
                "tcp:logs.example:6514",
                SyslogAddress::Tcp("logs.example".into(), 6514),
            ),
        ] {
            let address = read(text).unwrap();
            assert_eq!(address, meant);
            if text != "unix:log" {
                assert_eq!(address.to_string(), text, "as it is told");
            }
        }
    }

    #[test]
    fn what_names_no_collector_is_refused() {
        let long = format!("unix:/{}", "x".repeat(UNIX_PATH_BYTES_MAX));
        for text in [
            "",
            "udp",
            "udp:",
            "udp:host",
            "udp:host:",
            "udp:host:0",
            "udp:host:65536",
            "udp::514",
            "udp:a b:514",
            "udp:::1:514",
            "tcp:[::1:514",
            "tcp:[a]:514",
            "tls:host:514",
            "/dev/log",
            "unix:",
            "unix:/dev/",
            &long,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}

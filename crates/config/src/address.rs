//! Addresses to listen on and host names, as they are written in a config.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::ListenAddress;

/// The port of `localhost:PORT`, which stands for this machine's addresses of both families.
pub(crate) fn localhost_port(text: &str) -> Option<u16> {
    port_number(text.strip_prefix("localhost:")?)
}

/// What is wrong with a text, and what to do.
pub(crate) type Wrong = (String, String);

/// An address as `listen.address` has it. `resolve` makes a path of a relative one.
pub(crate) fn listen_address(
    text: &str,
    resolve: impl Fn(&str) -> std::path::PathBuf,
) -> Result<ListenAddress, Wrong> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix_address(path, resolve);
    }
    if let Some(name) = text.strip_prefix("systemd:") {
        let is_name = (1..=255).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_graphic() && c != ':');
        if is_name {
            return Ok(ListenAddress::Inherited(name.to_owned()));
        }
        let hint = "write what the unit's `FileDescriptorName=` says: `systemd:web`";
        return Err((
            format!("`{text}` names no socket of systemd"),
            hint.to_owned(),
        ));
    }
    if let Some(port) = text.strip_prefix(':').filter(|port| !port.contains(':')) {
        let address = port_number(port).map(|port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
        return address
            .map(ListenAddress::Tcp)
            .ok_or_else(|| wrong_port(text, port));
    }
    match text.parse() {
        Ok(address) => Ok(ListenAddress::Tcp(address)),
        Err(_) => Err(not_an_address(text)),
    }
}

fn unix_address(
    path: &str,
    resolve: impl Fn(&str) -> std::path::PathBuf,
) -> Result<ListenAddress, Wrong> {
    if path.is_empty() || path.starts_with('@') || path.ends_with('/') {
        let hint = "write a path that ends in a file name: `unix:/run/hob/web.sock`";
        return Err((
            format!("`unix:{path}` names no socket file"),
            hint.to_owned(),
        ));
    }
    let path = resolve(path);
    let len = path.as_os_str().len();
    if len > UNIX_PATH_BYTES_MAX {
        let message = format!(
            "{} has {len} bytes, too long for a Unix socket",
            path.display()
        );
        return Err((
            message,
            format!("use a path of at most {UNIX_PATH_BYTES_MAX} bytes"),
        ));
    }
    Ok(ListenAddress::Unix(path))
}

/// `sun_path` has 108 bytes, one of them for the NUL.
const UNIX_PATH_BYTES_MAX: usize = 107;

fn port_number(text: &str) -> Option<u16> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

fn wrong_port(text: &str, port: &str) -> Wrong {
    (
        format!("`{text}` has no right port: `{port}`"),
        "ports are numbers from 0 to 65535".to_owned(),
    )
}

fn not_an_address(text: &str) -> Wrong {
    let message = format!("`{text}` is no address to listen on");
    if port_number(text).is_some() {
        let hint =
            format!("write `:{text}` for every address, `127.0.0.1:{text}` for this machine");
        return (message, hint);
    }
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        let address = SocketAddr::new(ip, 8080);
        return (message, format!("add a port: `{address}`"));
    }
    if let Some((_, rest)) = text.split_once("://") {
        return (
            message,
            format!("write it without the scheme: `{}`", rest.trim_matches('/')),
        );
    }
    if text.starts_with(['/', '.']) {
        return (message, format!("a Unix socket is written `unix:{text}`"));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if port_number(port).is_none() => {
            if host.parse::<IpAddr>().is_ok() || host.ends_with(']') || host == "localhost" {
                return wrong_port(text, port);
            }
            (message, HINT.to_owned())
        }
        Some(("*", port)) => (message, format!("write `:{port}` for every address")),
        Some((host, port)) if host.contains(':') => (
            message,
            format!("an IPv6 address stands in brackets: `[{host}]:{port}`"),
        ),
        Some((_, port)) => (
            message,
            format!("names are not looked up: write the IP address, or `:{port}`"),
        ),
        None => (message, HINT.to_owned()),
    }
}

const HINT: &str = "write `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080`, `unix:PATH` or `systemd:NAME`";

/// Checks a host name as `site.names` has it.
pub(crate) fn check_host(text: &str) -> Result<(), Wrong> {
    if text == "*" {
        return Err((
            "`*` is no host name".to_owned(),
            "a site without `names` answers every host that no other site names".to_owned(),
        ));
    }
    let host = text.strip_prefix("*.").unwrap_or(text);
    if is_ip(text) {
        return Ok(());
    }
    let wrong = |message: String, hint: String| Err((message, hint));
    if let Some((_, rest)) = host.split_once("://") {
        let plain = rest.split('/').next().unwrap_or(rest);
        return wrong(
            format!("`{text}` is a URL"),
            format!("write the host only: `{plain}`"),
        );
    }
    if let Some((name, port)) = host.rsplit_once(':')
        && port_number(port).is_some()
    {
        return wrong(
            format!("`{text}` has a port"),
            format!("write the name only: `{name}`"),
        );
    }
    if !host.is_ascii() {
        let hint = "write it in punycode, as browsers send it: `xn--...`";
        return wrong(format!("`{text}` is not ASCII"), hint.to_owned());
    }
    if host.bytes().any(|b| b.is_ascii_uppercase()) {
        let lower = text.to_ascii_lowercase();
        return wrong(format!("`{text}` has capitals"), format!("write `{lower}`"));
    }
    if host.contains('*') {
        let hint = "`*.` may only begin a name: `*.example.org`";
        return wrong(format!("`{text}` has `*` inside"), hint.to_owned());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        let hint = "names are letters, digits and `-` between dots: `www.example.org`";
        return wrong(format!("`{text}` is no host name"), hint.to_owned());
    }
    Ok(())
}

fn is_ip(text: &str) -> bool {
    let bracketed = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    match bracketed {
        Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
        None => text.parse::<std::net::Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ListenAddress, Wrong> {
        listen_address(text, |path| std::path::Path::new("/base").join(path))
    }

    #[test]
    fn each_kind_of_address_is_read() {
        let tcp = |text: &str| Ok(ListenAddress::Tcp(text.parse().unwrap()));
        assert_eq!(read("127.0.0.1:8080"), tcp("127.0.0.1:8080"));
        assert_eq!(read("[::1]:0"), tcp("[::1]:0"));
        assert_eq!(read(":80"), tcp("[::]:80"));
        assert_eq!(
            read("unix:a.sock"),
            Ok(ListenAddress::Unix("/base/a.sock".into()))
        );
        assert_eq!(
            read("unix:/a.sock"),
            Ok(ListenAddress::Unix("/a.sock".into()))
        );
        assert_eq!(
            read("systemd:web"),
            Ok(ListenAddress::Inherited("web".into()))
        );
    }

    #[test]
    fn localhost_is_the_one_name_that_is_known() {
        assert_eq!(localhost_port("localhost:8443"), Some(8443));
        assert_eq!(localhost_port("localhost:0"), Some(0));
        for text in ["localhost", "localhost:", "localhost:x", "localhost:99999"] {
            assert_eq!(localhost_port(text), None, "{text}");
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn wrong_addresses_say_what_to_write() {
        for (text, hint) in [
            ("8080", "`127.0.0.1:8080`"),
            ("127.0.0.1", "`127.0.0.1:8080`"),
            ("::1", "`[::1]:8080`"),
            ("localhost:http", "65535"),
            ("localhost", "`localhost:8080`"),
            ("web:80", "or `:80`"),
            ("*:80", "`:80`"),
            ("http://127.0.0.1:80/", "`127.0.0.1:80`"),
            ("/run/x.sock", "`unix:/run/x.sock`"),
            ("127.0.0.1:99999", "65535"),
            (":x", "65535"),
            ("", "`unix:PATH`"),
            ("unix:", "`unix:/run/hob/web.sock`"),
            ("systemd:a b", "FileDescriptorName"),
        ] {
            let (_, told) = read(text).unwrap_err();
            assert!(told.contains(hint), "{text}: {told}");
        }
        let long = format!("unix:/{}", "x".repeat(200));
        assert!(read(&long).unwrap_err().0.contains("too long"));
    }

    #[test]
    fn host_names_are_checked() {
        for name in [
            "a",
            "example.org",
            "*.example.org",
            "xn--bcher-kva.de",
            "10.0.0.1",
            "[::1]",
        ] {
            assert_eq!(check_host(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "*",
            "a.*",
            "*a.b",
            "A.b",
            "a:80",
            "http://a/",
            "bücher.de",
            "a..b",
            "-a",
            "a.",
            "a b",
        ] {
            assert!(check_host(name).is_err(), "{name}");
        }
    }
}

//! Where the servers' machine is, as `--target` says it.

use std::fmt;
use std::str::FromStr;

/// Where the servers' machine hears, and what it printed when it began to.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetAddress {
    host: String,
    port: u16,
    /// The secret; empty where nobody has said it.
    token: String,
}

impl TargetAddress {
    /// Host and port.
    pub(crate) fn place(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// What the other side printed when it began; empty where nobody has said it.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The same with what the other side printed when it began.
    #[must_use]
    pub fn with_token(self, token: String) -> TargetAddress {
        TargetAddress { token, ..self }
    }
}

impl FromStr for TargetAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetAddress, String> {
        let parts = text.rsplit_once(':').and_then(|(host, port)| {
            let is_name = !host.is_empty() && !host.contains([':', '/', '@']);
            Some((host.to_owned(), port.parse().ok()?)).filter(|_| is_name)
        });
        match parts {
            Some((host, port)) if port > 0 => Ok(TargetAddress {
                host,
                port,
                token: String::new(),
            }),
            _ => Err(format!(
                "{text:?} is no servers' machine; write HOST:PORT as `hob compare --serve` printed \
                 it there"
            )),
        }
    }
}

impl fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Without the secret.
impl fmt::Debug for TargetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TargetAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_a_host_and_a_port_and_does_not_show_its_token() {
        let address: TargetAddress = "server.example:7070".parse().unwrap();
        let address = address.with_token("secret".to_owned());
        assert_eq!(address.to_string(), "server.example:7070");
        assert!(!format!("{address:?}").contains("secret"));
        for text in [
            "",
            "host",
            "host:",
            ":7070",
            "host:0",
            "host:70700",
            "::1:80",
        ] {
            let why = text.parse::<TargetAddress>().unwrap_err();
            assert!(why.contains("write HOST:PORT"), "{why}");
        }
    }
}

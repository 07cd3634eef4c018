//! Commands that know nothing of the web: their arguments, some of them from the query.

use regex_lite::Regex;

use crate::handle::cgi::arguments::values_of;
use crate::handle::cgi::limits::PARAMETER_BYTES_MAX;
use crate::handle::config::Argument;

/// A command, ready to run.
pub struct RouteCommand {
    /// The program, an absolute path.
    pub program: Vec<u8>,
    /// Its arguments, its name first.
    pub arguments: Vec<Argument>,
    /// Fields of the query it takes, and what their values must be.
    pub parameters: Vec<(String, Regex)>,
    /// The folder it works in.
    pub dir: Vec<u8>,
    /// Media type of what it prints.
    pub output: String,
}

/// Why a query does not fit a command (400).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A field is not there.
    Missing,
    /// A field is there more than once.
    Repeated,
    /// A value is not as its pattern says.
    Wrong,
}

impl Misfit {
    /// The reason in words, for the record.
    pub fn reason(self) -> &'static str {
        match self {
            Misfit::Missing => "the query lacks a field that the command needs",
            Misfit::Repeated => "the query has a field of the command twice",
            Misfit::Wrong => "the query has a value that cgi.parameters does not allow",
        }
    }
}

impl RouteCommand {
    /// The arguments for a query, and the name of the field that does not fit otherwise.
    pub fn arguments(&self, query: &[u8]) -> Result<Vec<Vec<u8>>, (Misfit, &str)> {
        self.arguments
            .iter()
            .map(|argument| match argument {
                Argument::Text(text) => Ok(text.clone().into_bytes()),
                Argument::Query(name) => {
                    self.value(name, query).map_err(|misfit| (misfit, &**name))
                }
            })
            .collect()
    }

    fn value(&self, name: &str, query: &[u8]) -> Result<Vec<u8>, Misfit> {
        let mut values = values_of(query, name);
        let value = values.next().ok_or(Misfit::Missing)?.ok_or(Misfit::Wrong)?;
        if values.next().is_some() {
            return Err(Misfit::Repeated);
        }
        let pattern = self.parameters.iter().find(|(known, _)| known == name);
        let text = std::str::from_utf8(&value).map_err(|_| Misfit::Wrong)?;
        let fits = pattern.is_some_and(|(_, pattern)| pattern.is_match(text));
        match fits && value.len() <= PARAMETER_BYTES_MAX && !value.starts_with(b"-") {
            true => Ok(value),
            false => Err(Misfit::Wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::config::parameter_pattern;

    fn command() -> RouteCommand {
        let of = |name: &str, pattern| (name.to_owned(), parameter_pattern(pattern).unwrap());
        RouteCommand {
            program: b"/bin/echo".to_vec(),
            arguments: vec![
                Argument::Text("echo".to_owned()),
                Argument::Query("day".to_owned()),
                Argument::Text("${x}".to_owned()),
            ],
            parameters: vec![of("day", "mon|tue|[a-z. -]{5}")],
            dir: b"/".to_vec(),
            output: String::new(),
        }
    }

    #[test]
    fn value_that_fits_is_one_argument() {
        for (query, value) in [
            ("day=mon", "mon"),
            ("x=1&day=tue&y", "tue"),
            ("day=a+b.c", "a b.c"),
            ("d%61y=%6don", "mon"),
        ] {
            let expected = ["echo", value, "${x}"].map(|word| word.as_bytes().to_vec());
            assert_eq!(
                command().arguments(query.as_bytes()),
                Ok(expected.to_vec()),
                "{query}"
            );
        }
    }

    #[test]
    fn value_that_does_not_fit_is_refused() {
        for (query, misfit) in [
            ("", Misfit::Missing),
            ("days=mon", Misfit::Missing),
            ("day=mon&day=tue", Misfit::Repeated),
            ("day=", Misfit::Wrong),
            ("day=monday", Misfit::Wrong),
            ("day=mon%0atue", Misfit::Wrong),
            ("day=mon%00", Misfit::Wrong),
            ("day=-abcd", Misfit::Wrong),
            ("day=%ffabcd", Misfit::Wrong),
        ] {
            let command = command();
            let got = command.arguments(query.as_bytes());
            assert_eq!(got, Err((misfit, "day")), "{query}");
        }
    }
}

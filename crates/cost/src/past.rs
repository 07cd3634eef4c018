//! What the same things took in 1995, in milliseconds, from the figures of old documents.

use hob_load::history::figures_of;

/// The whole of a request, of the wider literature as all stages are.
pub(crate) const TOTAL: &str = "W.stage.total.542";
/// Client work, reading the answer, connection.
pub(crate) const CLIENT: &str = "W.stage.client.542";
/// Reading the request's head.
pub(crate) const PARSE: &str = "W.stage.parse.542";
/// Decoding and formatting in the CGI program.
pub(crate) const PROGRAM: &str = "W.stage.program.542";
/// fork and exec.
pub(crate) const CREATE: &str = "W.stage.create.542";
/// Blocked on a socket, which nobody explained.
pub(crate) const BLOCKED: &str = "W.stage.blocked.542";
/// Fork and 1,000 bytes each way.
pub(crate) const FORK: &str = "D.exchange.fork.1000";
/// The same with exec.
pub(crate) const FORK_EXEC: &str = "D.exchange.fork-exec.1000";

/// The figure of an id.
pub(crate) fn ms(id: &str) -> f64 {
    figures_of(id).next().map_or(f64::NAN, |then| then.figure)
}

/// All that is printed for it.
pub(crate) fn text(id: &str) -> String {
    let all: Vec<String> = figures_of(id).map(|then| then.figure.to_string()).collect();
    all.join(" or ")
}

/// Where stages are from.
pub(crate) fn source() -> String {
    let mut wider = hob_load::history::documents()
        .iter()
        .filter(|one| one.key == 'W');
    wider.next().map_or(String::new(), |one| {
        format!("1995 ms: {}; {}", one.title, one.method)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_that_were_printed() {
        let stages = [
            TOTAL, CLIENT, PARSE, PROGRAM, CREATE, BLOCKED, FORK, FORK_EXEC,
        ];
        assert_eq!(
            stages.map(text),
            ["202", "16", "43", "7", "14 or 24", "120", "10", "24"]
        );
        assert_eq!(ms(TOTAL), 202.0);
        assert!(source().starts_with("1995 ms: wider literature: "));
    }
}

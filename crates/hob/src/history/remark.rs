//! What is to be said of a request in a line: why it was slow, how it failed.

use crate::escape;
use crate::facts::JsonView;

/// Verdict, failure and end, where there is something to say.
pub(crate) fn remark(request: JsonView<'_>) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(verdict) = request.text("verdict") {
        parts.push(verdict.to_owned());
    }
    if let Some(failure) = failure(request) {
        parts.push(failure);
    }
    match request.text("outcome") {
        Some("client-left") => parts.push("the client left".to_owned()),
        Some("timeout") => parts.push("the client took too long".to_owned()),
        Some("broken") => parts.push("the answer broke off".to_owned()),
        _ => {}
    }
    if let Some(note) = request.text("note") {
        parts.push(note.to_owned());
    }
    let text = parts.join("; ");
    (!text.is_empty()).then(|| escape::line(&text).into_owned())
}

/// Whose fault it was, and what went wrong.
fn failure(request: JsonView<'_>) -> Option<String> {
    let fault = request.text("fault").filter(|fault| *fault != "none");
    let why: Vec<&str> = ["reason", "detail"]
        .into_iter()
        .filter_map(|name| request.text(name))
        .collect();
    match (fault, why.join(": ")) {
        (None, why) if why.is_empty() => None,
        (None, why) => Some(why),
        (Some(fault), why) if why.is_empty() => Some(format!("fault of the {fault}")),
        (Some(fault), why) => Some(format!("{fault}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn remarks_say_what_was_slow_and_what_failed() {
        for (request, wanted) in [
            (json!({ "fault": "none", "outcome": "complete" }), None),
            (
                json!({ "fault": "script", "reason": "no head", "detail": "a\u{1b}b" }),
                Some("script: no head: a\\x1bb"),
            ),
            (
                json!({ "verdict": "client: 1 of 2 s", "outcome": "timeout", "fault": "client" }),
                Some("client: 1 of 2 s; fault of the client; the client took too long"),
            ),
        ] {
            assert_eq!(remark(JsonView(&request)).as_deref(), wanted);
        }
    }
}

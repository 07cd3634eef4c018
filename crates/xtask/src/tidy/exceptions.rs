//! What may break a rule, and why. One list, so that it is read when it grows.
//!
//! An exception that hides nothing any more is itself a finding.

use super::report::TidyReport;

/// A file that a rule does not hold for.
struct Exception {
    rule: &'static str,
    path: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[Exception {
    rule: "handler-named",
    path: "crates/server/src/answer/proof.rs",
    reason: "proofs for an authority are fixed answers without a route",
}];

/// Takes excepted findings out, and reports exceptions that are no longer needed.
pub(super) fn apply(report: &mut TidyReport) {
    let mut unused = Vec::new();
    for exception in EXCEPTIONS {
        let before = report.findings.len();
        report
            .findings
            .retain(|finding| finding.rule != exception.rule || finding.path != exception.path);
        if report.findings.len() == before {
            unused.push(exception);
        }
    }
    report.begin("exceptions");
    for Exception { rule, path, reason } in unused {
        report.add(
            "crates/xtask/src/tidy/exceptions.rs",
            1,
            format!("{path} keeps rule {rule} without its exception ({reason}); remove it"),
        );
    }
}

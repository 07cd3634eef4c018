//! Findings, and how they are printed: `path:line: [rule] what is wrong and what to do`.

use std::collections::BTreeSet;
use std::fmt;

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// Path relative to the root.
    pub(super) path: String,
    /// Line, from 1; 1 for the file as a whole.
    pub(super) line: usize,
    /// The rule's name.
    pub(super) rule: &'static str,
    /// What is wrong and what to do.
    pub(super) message: String,
}

/// All findings of one run.
pub(super) struct TidyReport {
    /// In the order they were found.
    pub(super) findings: Vec<Finding>,
    rules: Vec<&'static str>,
    file_count: usize,
}

impl TidyReport {
    pub(super) fn new(file_count: usize) -> TidyReport {
        TidyReport {
            findings: Vec::new(),
            rules: Vec::new(),
            file_count,
        }
    }

    /// What is added from here on belongs to this rule.
    pub(super) fn begin(&mut self, rule: &'static str) {
        self.rules.push(rule);
    }

    /// Adds a finding of the current rule.
    pub(super) fn add(&mut self, path: &str, line: usize, message: impl Into<String>) {
        let Some(&rule) = self.rules.last() else {
            return;
        };
        self.findings.push(Finding {
            path: path.to_string(),
            line,
            rule,
            message: message.into(),
        });
    }

    pub(super) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for TidyReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort();
        findings.dedup();
        for Finding {
            path,
            line,
            rule,
            message,
        } in &findings
        {
            writeln!(out, "{path}:{line}: [{rule}] {message}")?;
        }
        let broken: BTreeSet<_> = findings.iter().map(|finding| finding.rule).collect();
        if let Some(rule) = broken.first() {
            writeln!(
                out,
                "`cargo xtask tidy --explain {rule}` says what a rule is for"
            )?;
        }
        writeln!(
            out,
            "tidy: {} rules over {} files, {} findings",
            self.rules.len(),
            self.file_count,
            findings.len()
        )?;
        let passed = self.rules.len() - broken.len();
        writeln!(out, "{passed} passed, {} failed, 0 skipped", broken.len())
    }
}

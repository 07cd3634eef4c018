//! Access log formats: what is wrong with one, in its place.

use hob_trace::format::variables_of;
use hob_trace::{AccessLogFormat, FormatError};

use super::fault::{Faults, Spot};

/// Tells everything that is wrong with a `log.format`.
pub(crate) fn check_log_format(format: &str, spot: Spot, faults: &mut Faults<'_>) {
    let mut remaining = format.to_owned();
    while let Err(error) = AccessLogFormat::parse(&remaining) {
        let FormatError::UnknownField { name, at, .. } = &error else {
            // A format with unknown fields only is no format of another kind.
            if remaining == format || !matches!(error, FormatError::NoField { .. }) {
                tell(format, &error, spot, faults);
            }
            return;
        };
        let field = *at..at + name.len() + 2;
        unknown_field(
            name,
            error.nearest(),
            faults.sources().inside(spot, format, field.clone()),
            faults,
        );
        // Read around it, so that the next one is told too.
        remaining.replace_range(field.clone(), &" ".repeat(field.len()));
    }
}

/// The variables of the environment that a `log.format` names, with their values.
pub(crate) fn log_variables(
    format: &str,
    spot: Spot,
    faults: &mut Faults<'_>,
) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for name in variables_of(format) {
        if variables.iter().any(|(known, _)| known == name) {
            continue;
        }
        let value = faults.sources().variable(name).map(str::to_owned);
        if value.is_none() {
            faults
                .warn(spot, format!("`{{env:{name}}}` is not set: lines have `-`"))
                .hint("set it where hob is started, or remove it");
        }
        variables.push((name.to_owned(), value.unwrap_or_default()));
    }
    variables
}

fn unknown_field(name: &str, nearest: Option<&str>, spot: Spot, faults: &mut Faults<'_>) {
    let hint = match nearest {
        Some(meant) => format!("did you mean `{{{meant}}}`?"),
        None => "`hob check --reference` lists the fields at its end".to_owned(),
    };
    faults
        .error(spot, format!("there is no field `{{{name}}}`"))
        .hint(hint);
}

fn tell(format: &str, error: &FormatError, spot: Spot, faults: &mut Faults<'_>) {
    let (message, part) = match error {
        FormatError::NoField { .. } => (
            format!("{format:?} is no format and has no `{{field}}`"),
            0..format.len(),
        ),
        _ => (error.to_string(), error.at()..error.at() + 1),
    };
    let hint = match (error, error.nearest()) {
        (_, Some(meant)) => format!("did you mean \"{meant}\"?"),
        (FormatError::WrongName { .. }, _) => NAMES.to_owned(),
        (FormatError::TooManyValues { .. } | FormatError::MemberTwice { .. }, _) => {
            "remove it".to_owned()
        }
        (FormatError::NoMember { .. }, _) => MEMBERS.to_owned(),
        _ => FORMATS.to_owned(),
    };
    let spot = faults.sources().inside(spot, format, part);
    faults.error(spot, message).hint(hint);
}

const NAMES: &str = "names of fields and cookies are letters, digits and `-`; those of variables \
                     letters, digits and `_`";
const MEMBERS: &str = "behind `json` stand `{field}` words and spaces alone";
const FORMATS: &str = "write `common`, `combined`, `json`, or a line with `{field}` words";

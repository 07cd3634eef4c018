//! Access log formats: what is wrong with one, in its place.

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
    let hint = match error.nearest() {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => FORMATS.to_owned(),
    };
    let spot = faults.sources().inside(spot, format, part);
    faults.error(spot, message).hint(hint);
}

const FORMATS: &str = "write `common`, `combined`, `json`, or a line with `{field}` words";

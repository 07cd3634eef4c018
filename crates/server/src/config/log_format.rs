//! Access log formats, as far as a config can get them wrong.

use super::fault::{Faults, Spot, listed};
use super::nearest::nearest;
use super::schema::{LOG_FIELDS, LOG_FORMATS};

/// Tells what is wrong with a `log.format`.
pub(crate) fn check_log_format(format: &str, spot: Spot, faults: &mut Faults<'_>) {
    if LOG_FORMATS.contains(&format) {
        return;
    }
    let mut field_count = 0;
    let mut at = 0;
    while let Some(found) = format[at..].find(['{', '}', '\n', '\r']) {
        at += found;
        let rest = &format[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            at += 2;
            continue;
        }
        let field = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let Some((field, _)) = field else {
            let spot = faults.sources().inside(spot, format, at..at + 1);
            let message = "a brace without its partner, or a line break";
            faults
                .error(spot, message)
                .hint("write `{field}`; a plain brace is `{{` or `}}`");
            return;
        };
        field_count += 1;
        let end = at + field.len() + 2;
        if !LOG_FIELDS.contains(&field) {
            let spot = faults.sources().inside(spot, format, at..end);
            unknown_field(field, spot, faults);
        }
        at = end;
    }
    if field_count == 0 {
        let formats = listed(LOG_FORMATS.iter().copied(), " and ");
        let hint = match nearest(format, LOG_FORMATS.iter().copied()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("formats are {formats}, or a line with `{{field}}` words"),
        };
        faults
            .error(
                spot,
                format!("{format:?} is no format and has no `{{field}}`"),
            )
            .hint(hint);
    }
}

fn unknown_field(field: &str, spot: Spot, faults: &mut Faults<'_>) {
    let fields = || LOG_FIELDS.iter().copied();
    let hint = match nearest(field, fields()) {
        Some(meant) => format!("did you mean `{{{meant}}}`?"),
        None => format!("fields are {}", listed(fields(), " and ")),
    };
    faults
        .error(spot, format!("there is no field `{{{field}}}`"))
        .hint(hint);
}

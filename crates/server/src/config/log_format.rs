//! Access log formats, as far as a config can get them wrong.

use super::fault::{Faults, Spot, listed};
use super::nearest::nearest;
use super::pattern::{Piece, pieces};
use super::schema::{LOG_FIELDS, LOG_FORMATS};

/// Tells what is wrong with a `log.format`.
pub(crate) fn check_log_format(format: &str, spot: Spot, faults: &mut Faults<'_>) {
    if LOG_FORMATS.contains(&format) {
        return;
    }
    let pieces = match pieces(format) {
        Ok(pieces) => pieces,
        Err(error) => {
            faults.error(spot, error.message).hint(error.hint);
            return;
        }
    };
    let fields = pieces.iter().filter_map(|piece| match piece {
        Piece::Name(name) => Some(*name),
        Piece::Plain(_) => None,
    });
    let fields: Vec<&str> = fields.collect();
    if fields.is_empty() {
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
    for field in fields {
        if LOG_FIELDS.contains(&field) {
            continue;
        }
        let hint = match nearest(field, LOG_FIELDS.iter().copied()) {
            Some(meant) => format!("did you mean `{{{meant}}}`?"),
            None => format!("fields are {}", listed(LOG_FIELDS.iter().copied(), " and ")),
        };
        let spot = faults
            .sources()
            .inside(spot, format, &format!("{{{field}}}"));
        faults
            .error(spot, format!("there is no field `{{{field}}}`"))
            .hint(hint);
    }
}

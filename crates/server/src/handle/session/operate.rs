//! What an operator can have done to visits: ended.

use std::sync::Arc;

use crate::handle::script::visits::table::KeepsVisit;
use crate::handle::session::visit::SessionTable;
use crate::serve::fleet::Fleet;

/// Ends the visit of this number, whosever program it is: its process finishes what it has, and
/// goes. False where there is none.
pub fn end_visit(fleet: &Fleet, number: u64) -> bool {
    let of = |table: &Arc<SessionTable>| {
        let all = table.all();
        all.into_iter().find(|visit| visit.number == number)
    };
    let found = fleet.session_tables().iter().find_map(of);
    found.is_some_and(|visit| {
        visit.keeps.end();
        true
    })
}

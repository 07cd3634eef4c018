//! A real spawner, with the keeper's and a server thread's side in the test's hands.
//!
//! The spawner is this test program, started again for one test that becomes it.

mod bench;
mod groups;
mod harness;
mod limits;
mod rules;
mod runs;
mod sandbox;

/// Set for the process that becomes a spawner: the test below does nothing without it.
const SPAWNER: &str = "HOB_TEST_SPAWNER";

#[test]
fn spawner_process() {
    if std::env::var_os(SPAWNER).is_some() {
        super::run().unwrap();
        std::process::exit(0);
    }
}

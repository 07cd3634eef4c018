//! Activity: seconds and minutes, holes, steps, and the file they are kept in.

use std::os::unix::fs::FileExt;

use super::rows::ActivityRing;
use super::*;

const NOW: u64 = 1_795_392_000;

fn row(requests: u32) -> ActivityRow {
    ActivityRow {
        requests,
        p50_us: 10,
        running: requests,
        ..ActivityRow::default()
    }
}

fn add(activity: &Activity, unix_s: u64, row: &ActivityRow, minute: Option<[u32; 3]>) -> Changed {
    let changed = activity.with(unix_s, row, minute);
    activity.record(&changed);
    changed
}

fn requests(stretch: &Stretch) -> Vec<Option<u32>> {
    let rows = stretch.rows.iter();
    rows.map(|row| row.map(|row| row.requests)).collect()
}

#[test]
fn seconds_are_rows_and_what_was_not_recorded_is_a_hole() {
    let activity = Activity::new();
    add(&activity, NOW - 3, &row(1), None);
    add(&activity, NOW - 1, &row(2), None);
    let told = activity.last_seconds(4, NOW);
    assert_eq!((told.step_s, told.from_unix_s), (1, NOW - 4));
    assert_eq!(requests(&told), [None, Some(1), None, Some(2)]);
    // The same second twice, as after a clock that was set back.
    add(&activity, NOW - 1, &row(5), None);
    assert_eq!(requests(&activity.last_seconds(1, NOW)), [Some(7)]);
}

#[test]
fn wider_steps_add_up_and_older_times_come_from_minutes() {
    let activity = Activity::new();
    for second in 0..7200 {
        add(&activity, NOW - 7200 + second, &row(1), None);
    }
    let tens = activity.stretch(NOW - 100, NOW, 10, NOW);
    assert_eq!(requests(&tens), [Some(10); 10]);
    let minutes = activity.stretch(NOW - 7200, NOW, 1, NOW);
    assert_eq!((minutes.step_s, minutes.rows.len()), (60, 120));
    assert!(requests(&minutes).iter().all(|count| *count == Some(60)));
    assert_eq!(minutes.rows[0].unwrap().running, 1);
    let month = activity.stretch(0, u64::MAX, 1, NOW);
    assert!(month.rows.len() as u64 <= ROWS_MAX, "{}", month.rows.len());
    assert_eq!(month.step_s % 60, 0);
    let all: u32 = requests(&month).into_iter().flatten().sum();
    assert_eq!(all, 7200);
}

#[test]
fn odd_questions_have_answers() {
    let activity = Activity::new();
    add(&activity, NOW - 1, &row(1), None);
    assert_eq!(activity.stretch(NOW, NOW - 10, 1, NOW).rows, []);
    assert_eq!(activity.stretch(NOW + 10, NOW + 20, 1, NOW).rows, []);
    assert_eq!(activity.stretch(0, 0, 0, 0).rows, []);
    let one = activity.stretch(NOW - 1, u64::MAX, u64::MAX / 120, NOW);
    assert_eq!(one.rows.len(), 1);
    // A clock far ahead, and back again: what it covered is gone, nothing is told twice.
    add(&activity, NOW - 1 + SECONDS_KEPT, &row(9), None);
    assert_eq!(requests(&activity.last_seconds(1, NOW)), [None]);
}

#[test]
fn minute_has_its_own_percentiles_where_they_are_known() {
    let activity = Activity::new();
    add(&activity, NOW, &row(1), None);
    let changed = add(&activity, NOW + 1, &row(1), Some([1, 2, 3]));
    let told = changed.minute.1;
    assert_eq!((told.p50_us, told.p90_us, told.p99_us), (1, 2, 3));
    assert_eq!((told.requests, changed.second.1.p50_us), (2, 10));
}

fn filled(file: &std::fs::File) {
    let activity = Activity::new();
    let file = ActivityFile::open(file.try_clone().unwrap()).unwrap();
    for second in 0..100 {
        let changed = add(&activity, NOW - 100 + second, &row(3), None);
        file.write(&changed).unwrap();
    }
}

#[test]
fn a_file_brings_rows_over_a_restart() {
    let file = tempfile::tempfile().unwrap();
    filled(&file);
    let activity = Activity::new();
    let again = ActivityFile::open(file.try_clone().unwrap()).unwrap();
    assert_eq!(again.load(&activity).unwrap(), 0);
    let told = activity.stretch(NOW - 120, NOW, 1, NOW);
    let expected = [vec![None; 20], vec![Some(3); 100]].concat();
    assert_eq!(requests(&told), expected);
    // The minute goes on where it was.
    let changed = add(&activity, NOW - 1, &row(1), None);
    assert_eq!(changed.minute.1.requests, 60 * 3 + 1);
    assert!(file.metadata().unwrap().len() <= ACTIVITY_FILE_BYTES);
}

#[test]
fn rows_recorded_before_the_file_could_be_had_are_added_and_written() {
    let file = tempfile::tempfile().unwrap();
    filled(&file);
    let activity = Activity::new();
    // The server before is still at it: both have rows of a minute and of a second.
    for second in [NOW - 1, NOW + 30, NOW - 1 + SECONDS_KEPT] {
        add(&activity, second, &row(1), None);
    }
    add(&activity, NOW - 2, &row(1), None);
    let again = ActivityFile::open(file.try_clone().unwrap()).unwrap();
    again.load(&activity).unwrap();
    let later = Activity::new();
    again.load(&later).unwrap();
    for activity in [activity, later] {
        let told = activity.stretch(NOW - 3, NOW + 31, 1, NOW + 31);
        let told = requests(&told);
        // The second that a later one has covered is a hole.
        assert_eq!(told[..3], [Some(3), Some(4), None]);
        assert_eq!(told[33], Some(1));
        let minutes = activity.stretch(NOW - 60, NOW + 60, 60, NOW + 60);
        assert_eq!(requests(&minutes), [Some(60 * 3 + 2), Some(1)]);
    }
}

#[test]
fn torn_slots_are_holes_and_foreign_files_are_left_alone() {
    let file = tempfile::tempfile().unwrap();
    filled(&file);
    let place = 512 + (NOW - 50) % SECONDS_KEPT * 100;
    file.write_all_at(b"x", place + 20).unwrap();
    let activity = Activity::new();
    let again = ActivityFile::open(file.try_clone().unwrap()).unwrap();
    assert_eq!(again.load(&activity).unwrap(), 1);
    let told = activity.last_seconds(50, NOW);
    assert_eq!(requests(&told)[0], None);
    assert_eq!(requests(&told)[1], Some(3));
    // Cut off in the middle of a slot, or of anything.
    for len in [512 + 150, 512 + 7, 100, 15] {
        file.set_len(len).unwrap();
        ActivityFile::open(file.try_clone().unwrap())
            .unwrap()
            .load(&Activity::new())
            .unwrap();
    }
    let foreign = tempfile::tempfile().unwrap();
    foreign
        .write_all_at(b"something that is dear to somebody", 0)
        .unwrap();
    ActivityFile::open(foreign).unwrap_err();
}

#[test]
fn memory_comes_with_rows() {
    let activity = Activity::new();
    add(&activity, NOW, &row(1), None);
    let rows = activity.rows.lock();
    let used = |ring: &ActivityRing| ring.pieces.iter().filter(|piece| !piece.is_empty()).count();
    assert_eq!((used(&rows.seconds), used(&rows.minutes)), (1, 1));
}

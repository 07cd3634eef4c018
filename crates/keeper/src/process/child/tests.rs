//! What is prepared before a clone; what a child does is tested with a real spawner.

use super::*;

fn pointed(strings: &[u8], argument_count: usize, variable_count: usize) -> Option<Vec<usize>> {
    let layout = StringsLayout {
        offset: 40,
        len: strings.len(),
        argument_count,
        variable_count,
    };
    let mut pointers = vec![ptr::null(); 3];
    let is_right = point(&mut pointers, strings, layout, b"");
    let start = strings.as_ptr() as usize;
    let offset = |pointer: &*const u8| match pointer.is_null() {
        true => usize::MAX,
        false => *pointer as usize - start,
    };
    is_right.then(|| pointers.iter().map(offset).collect())
}

const NULL: usize = usize::MAX;

#[test]
fn pointers_are_path_folder_arguments_null_variables_null() {
    let strings = b"/p\0/\0a\0bc\0N=v\0";
    assert_eq!(
        pointed(strings, 2, 1),
        Some(vec![0, 3, 5, 7, NULL, 10, NULL])
    );
    assert_eq!(
        pointed(strings, 3, 0),
        Some(vec![0, 3, 5, 7, 10, NULL, NULL])
    );
    assert_eq!(pointed(b"\0\0\0", 1, 0), Some(vec![0, 1, 2, NULL, NULL]));
}

#[test]
fn variables_of_the_config_stand_before_those_of_the_request() {
    let (strings, own) = (b"/p\0/\0a\0N=v\0", b"A=1\0B=\0");
    let layout = StringsLayout {
        offset: 40,
        len: strings.len(),
        argument_count: 1,
        variable_count: 1,
    };
    let mut pointers = vec![];
    assert!(point(&mut pointers, strings, layout, own));
    let expected = [
        &strings[..],
        &strings[3..],
        &strings[5..],
        b"",
        own,
        &own[4..],
        &strings[7..],
        b"",
    ];
    let expected = expected.map(|part| match part.is_empty() {
        true => ptr::null(),
        false => part.as_ptr(),
    });
    assert_eq!(pointers, expected);
}

#[test]
fn strings_that_are_too_few_too_many_or_not_ended_are_refused() {
    let strings = b"/p\0/\0a\0bc\0N=v\0";
    for (arguments, variables) in [(1, 1), (2, 2), (2, 0), (1, 4), (400, 0)] {
        assert_eq!(
            pointed(strings, arguments, variables),
            None,
            "{arguments} {variables}"
        );
    }
    assert_eq!(pointed(b"/p\0/\0a", 1, 0), None);
    assert_eq!(pointed(b"", 1, 0), None);
}

#[test]
fn report_is_taken_once_and_unknown_steps_are_none() {
    let word = AtomicU64::new((Step::Exec as u64) << 32 | 2);
    assert_eq!(StepReport(&word).take(), Some((Step::Exec, 2)));
    assert_eq!(StepReport(&word).take(), None);
    word.store(u64::MAX, Ordering::Release);
    assert_eq!(StepReport(&word).take(), None);
}

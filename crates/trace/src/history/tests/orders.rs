//! Other orders than the newest first: by time taken, and as requests came in.

use super::*;

/// Requests with these times, in microseconds, of threads that take turns; all ended in the same
/// millisecond.
fn timed(totals_us: impl Iterator<Item = u64>, threads: usize) -> Arc<RequestHistory> {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let mut writers: Vec<_> = (0..threads).map(|_| HistoryWriter::new(&history)).collect();
    for (request, total_us) in totals_us.enumerate() {
        let of = Record {
            total_us,
            ..record(request as u32, 5_000)
        };
        writers[request % threads].push(&of, &texts("/"), 0);
    }
    history
}

fn slowest(
    history: &RequestHistory,
    filter: &Filter,
    before: Option<Rank>,
    limit: usize,
) -> HistoryPage {
    page(HistorySearch::slowest(
        history,
        &[],
        filter.clone(),
        before,
        limit,
    ))
}

fn totals(page: &HistoryPage) -> Vec<u64> {
    let found = page.found.iter();
    found
        .map(|found| found.finished().record.total_us)
        .collect()
}

/// All pages, one behind the other.
fn all_slowest(history: &RequestHistory, filter: &Filter, limit: usize) -> (Vec<u32>, Vec<u64>) {
    let (mut numbers, mut times) = (Vec::new(), Vec::new());
    let mut before = None;
    loop {
        let page = slowest(history, filter, before, limit);
        assert_eq!((page.has_more, page.is_cut), (page.next.is_some(), false));
        numbers.extend(requests(&page));
        times.extend(totals(&page));
        before = match page.next {
            Some(Mark::Slowest(rank)) => Some(rank),
            Some(other) => panic!("{other}"),
            None => return (numbers, times),
        };
    }
}

#[test]
fn slowest_are_the_slowest_of_all() {
    let history = timed((0..2_000).map(|number| number * 7919 % 2_000), 1);
    let page = slowest(&history, &Filter::default(), None, 3);
    assert_eq!(totals(&page), [1_999, 1_998, 1_997]);
    assert!(page.has_more && !page.is_cut);
    // What cannot belong to the page is not looked at.
    let page = slowest(&timed(0..20_000, 1), &Filter::default(), None, 3);
    assert_eq!(totals(&page), [19_999, 19_998, 19_997]);
    assert!(page.scanned < 2_000, "{}", page.scanned);
}

#[test]
fn pages_of_the_slowest_follow_each_other_without_gap_or_double() {
    // Many take the same time, on three threads.
    let history = timed((0..3_000).map(|number| number * 7919 % 40), 3);
    for limit in [7, 100, 1000] {
        let (mut numbers, times) = all_slowest(&history, &Filter::default(), limit);
        assert!(times.is_sorted_by(|one, next| one >= next), "{limit}");
        numbers.sort_unstable();
        assert_eq!(numbers, (0..3_000).collect::<Vec<_>>(), "{limit}");
    }
    let slow = Filter {
        slower_us: Some(38),
        ..Filter::default()
    };
    let (numbers, times) = all_slowest(&history, &slow, 10);
    assert_eq!((numbers.len(), times[0], times[149]), (150, 39, 38));
}

#[test]
fn slowest_of_a_search_with_an_end_are_paged_and_said_to_be_no_more_than_that() {
    let history = timed((0..SCANNED_MAX + 50_000).map(|number| number % 1_000), 1);
    let none = Filter {
        text: Some("nowhere".to_owned()),
        ..Filter::default()
    };
    let page = slowest(&history, &none, None, 10);
    assert_eq!((page.found.len(), page.next), (0, None));
    assert!(page.is_cut && page.scanned >= SCANNED_MAX);
    // A page that needs no more than its first segments is whole.
    let page = slowest(&history, &Filter::default(), None, 10);
    assert!(page.has_more && totals(&page) == [999; 10]);
}

fn arrived(
    history: &RequestHistory,
    after: Option<Reached>,
    limit: usize,
) -> (HistoryPage, Reached) {
    let page = page(HistorySearch::arrived(
        history,
        &[],
        Filter::default(),
        after,
        limit,
    ));
    match page.next {
        Some(Mark::Reached(reached)) => (page, reached),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_follows_is_told_of_each_request_once_in_the_order_they_came_in() {
    let history = Arc::new(RequestHistory::new(HERE, FOREVER));
    let mut writers = [0; 2].map(|_| HistoryWriter::new(&history));
    let (page, mut reached) = arrived(&history, None, 10);
    assert!(page.found.is_empty() && !page.has_more && !page.is_gap);
    let mut told = Vec::new();
    for round in 0..40u32 {
        for request in 0..13 {
            // Clocks of threads do not agree: the later one tells of earlier ends.
            let finished_ms = 10_000 - u64::from(round);
            let of = record(round * 13 + request, finished_ms);
            writers[round as usize % 2].push(&of, &texts("/"), 0);
        }
        writers[round as usize % 2].hand_over();
        loop {
            let (page, next) = arrived(&history, Some(reached), 5);
            told.extend(requests(&page));
            reached = next;
            assert!(!page.is_gap && !page.is_cut);
            if !page.has_more {
                break;
            }
        }
    }
    assert_eq!(told, (0..40 * 13).collect::<Vec<_>>());
}

#[test]
fn who_follows_hears_of_what_is_gone_and_begins_anew_with_another_server() {
    let small = Retention {
        bytes_max: 3 * SEGMENT_BYTES as u64,
        ..FOREVER
    };
    let history = Arc::new(RequestHistory::new(HERE, small));
    let (_, reached) = arrived(&history, None, 10);
    let mut writer = HistoryWriter::new(&history);
    (0..20_000).for_each(|number| writer.push(&record(number, 5_000), &texts("/"), 0));
    writer.hand_over();
    let (mut page, mut next) = arrived(&history, Some(reached), 1000);
    assert!(page.is_gap);
    while page.has_more {
        (page, next) = arrived(&history, Some(next), 1000);
        assert!(!page.is_gap);
    }
    assert_eq!(requests(&page).last(), Some(&19_999));
    let (page, _) = arrived(&history, Some(next), 10);
    assert!(!page.is_gap && page.found.is_empty());
    let elsewhere = Reached {
        origin: SegmentOrigin { run: 7, server: 1 },
        ..next
    };
    let (page, _) = arrived(&filled(3), Some(elsewhere), 10);
    assert_eq!((requests(&page), page.is_gap), (vec![0, 1, 2], true));
}

//! Listings: exact pages and JSON.

use super::*;

fn entry(name: &[u8], kind: EntryKind, size: u64, modified_unix: i64) -> ListingEntry {
    ListingEntry {
        name: name.to_vec(),
        kind,
        size,
        modified_unix,
    }
}

fn entries() -> Vec<ListingEntry> {
    vec![
        entry(b"file10.txt", EntryKind::File, 1023, 86_400),
        entry(b"File9.txt", EntryKind::File, 1536, 784_111_777),
        entry(b"zoo", EntryKind::Folder, 4096, 0),
        entry(
            b"a & <b> \"c\"?#%.html",
            EntryKind::File,
            5_000_000,
            951_782_400,
        ),
        entry(b"caf\xe9:\xc3\xa4", EntryKind::File, 0, 86_399),
        entry(b"back\\slash", EntryKind::File, 1, -1),
        entry(b"Bar", EntryKind::Folder, 4096, 1),
    ]
}

fn contents() -> Contents {
    Contents {
        entries: entries(),
        is_cut: false,
    }
}

fn names(sort: Sort) -> Vec<String> {
    let mut entries = entries();
    sort.apply(&mut entries);
    entries
        .iter()
        .map(|entry| String::from_utf8_lossy(&entry.name).into_owned())
        .collect()
}

/// A page as the golden files have it: with its style left out.
fn unstyled(page: Vec<u8>) -> String {
    let page = String::from_utf8(page).unwrap();
    page.replace(STYLE, "[page.css]\n")
        .replace(include_str!("../listing.css"), "[listing.css]\n")
}

#[test]
fn page_of_a_folder() {
    let page = html("/docs/a<b>/".as_bytes(), contents(), Sort::default());
    assert_eq!(unstyled(page), include_str!("golden/folder.html"));
}

#[test]
fn page_of_an_empty_root() {
    let sort = Sort {
        key: SortKey::Size,
        order: SortDirection::Descending,
    };
    let page = html(b"/", Contents::default(), sort);
    assert_eq!(unstyled(page), include_str!("golden/empty.html"));
}

#[test]
fn page_of_a_part_says_so() {
    let part = Contents {
        is_cut: true,
        ..contents()
    };
    let page = String::from_utf8(html(b"/", part, Sort::default())).unwrap();
    let (_, end) = page.split_once("<footer>").unwrap();
    assert_eq!(
        end,
        "2 folders, 5 files, 4.8 MiB; the folder has more, which are not listed</footer>\n\
         </body>\n</html>\n"
    );
}

#[test]
fn json_of_a_folder() {
    let text = String::from_utf8(json(contents(), Sort::default())).unwrap();
    assert_eq!(text, include_str!("golden/folder.json"));
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    assert_eq!(json(Contents::default(), Sort::default()), b"[]\n");
}

#[test]
fn folders_come_first_in_every_order() {
    let sorted = |query: &str| names(Sort::from_query(Some(query.as_bytes())));
    let (bar, zoo) = ("Bar", "zoo");
    let (a, back, cafe) = ("a & <b> \"c\"?#%.html", "back\\slash", "caf\u{fffd}:\u{e4}");
    let (nine, ten) = ("File9.txt", "file10.txt");
    assert_eq!(sorted(""), [bar, zoo, a, back, cafe, nine, ten]);
    assert_eq!(
        sorted("sort=name&order=desc"),
        [zoo, bar, ten, nine, cafe, back, a]
    );
    assert_eq!(sorted("sort=size"), [bar, zoo, a, nine, ten, back, cafe]);
    assert_eq!(
        sorted("order=asc&sort=size"),
        [bar, zoo, cafe, back, ten, nine, a]
    );
    assert_eq!(
        sorted("sort=time&order=asc"),
        [zoo, bar, back, cafe, ten, nine, a]
    );
}

#[test]
fn unknown_words_in_the_query_are_ignored() {
    assert_eq!(Sort::from_query(None), Sort::default());
    let query = Some(&b"sort=colour&order=&sort&order=DESC&x"[..]);
    assert_eq!(Sort::from_query(query), Sort::default());
    let time = Sort {
        key: SortKey::Time,
        order: SortDirection::Descending,
    };
    assert_eq!(Sort::from_query(Some(b"x=1&sort=time")), time);
}

#[test]
fn names_are_ordered_as_people_count() {
    let mut names = [
        "a10",
        "A9",
        "a09",
        "b",
        "a",
        "a010",
        "a9b",
        "",
        "1",
        "a1000000000000000000000",
    ];
    let entry_of = |name: &str| entry(name.as_bytes(), EntryKind::File, 0, 0);
    let mut sorted: Vec<ListingEntry> = names.iter().map(|name| entry_of(name)).collect();
    Sort::default().apply(&mut sorted);
    names = [
        "",
        "1",
        "a",
        "A9",
        "a09",
        "a9b",
        "a010",
        "a10",
        "a1000000000000000000000",
        "b",
    ];
    assert_eq!(sorted, names.map(entry_of));
}

#[test]
fn sizes_for_people() {
    let cases = [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (10_188, "9.9 KiB"),
        (10_189, "10 KiB"),
        (1_048_063, "1023 KiB"),
        (1_048_064, "1.0 MiB"),
        (5_000_000, "4.8 MiB"),
        (u64::MAX, "16 EiB"),
    ];
    for (size, expected) in cases {
        assert_eq!(HumanSize(size).to_string(), expected, "{size}");
    }
}

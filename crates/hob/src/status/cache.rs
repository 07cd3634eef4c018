//! What the cache holds, and how often that was what was asked for.

use hob_load::page::{bytes, count};

use super::pairs;
use crate::facts::JsonView;
use crate::table::{TextCell, TextTable, numbers, texts, words};

/// The cache in lines.
pub(crate) fn text(cache: JsonView<'_>, _: Option<usize>) -> String {
    let amount = |name| cache.count(name).map(|size| bytes(size as f64));
    let number = |name| cache.count(name).map(count);
    let held = amount("bytes").map(|held| match amount("bytes_max") {
        Some(most) => format!("{held} of {most}"),
        None => held,
    });
    pairs(&[
        ("entries", number("entries")),
        ("bytes", held),
        ("pinned", amount("pinned_bytes")),
        ("hits", number("hits").map(|hits| hits + &share(cache))),
        ("misses", number("misses")),
        ("revalidations", number("revalidations")),
        ("evictions", number("evictions")),
    ])
}

/// The largest of what it holds.
pub(crate) fn largest(cache: JsonView<'_>, width: Option<usize>) -> String {
    let mut table = TextTable::new(&[
        texts("LARGEST"),
        words("SITE"),
        numbers("BYTES"),
        numbers("HITS"),
        numbers("AGE"),
        words("STATE"),
    ]);
    for entry in cache.each("entries") {
        table.push(vec![
            TextCell::text(entry.text("path")),
            TextCell::text(entry.text("site")),
            TextCell::bytes(entry.count("bytes")),
            TextCell::count(entry.count("hits")),
            TextCell::age(entry.count("age_s")),
            TextCell::text(entry.text("state")),
        ]);
    }
    match table.rows.is_empty() {
        true => String::new(),
        false => format!("\n{}", table.text(width)),
    }
}

/// Of all that was looked for, what was there.
fn share(cache: JsonView<'_>) -> String {
    let of = |name| cache.count(name).unwrap_or(0) as f64;
    let all = of("hits") + of("misses");
    match all > 0.0 {
        true => format!(", {:.1} % of what was looked for", of("hits") / all * 100.0),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn largest_files_are_rows() {
        let cache = json!({
            "entries": [{
                "path": "/srv/a\u{1b}.png", "site": "*", "bytes": 1500, "hits": 12345,
                "age_s": 61, "state": "hot",
            }],
        });
        assert_eq!(
            largest(JsonView(&cache), None),
            "\nLARGEST         SITE   BYTES    HITS      AGE  STATE\n\
             /srv/a\\x1b.png  *     1.5 kB  12,345  1 m 1 s  hot\n"
        );
        assert_eq!(largest(JsonView(&json!({})), None), "");
    }

    #[test]
    fn cache_is_told_in_lines() {
        let cache = json!({
            "entries": 3, "bytes": 1200, "bytes_max": 67_108_864, "hits": 3, "misses": 1,
        });
        assert_eq!(
            text(JsonView(&cache), None),
            "entries        3\nbytes          1.2 kB of 67.1 MB\n\
             hits           3, 75.0 % of what was looked for\nmisses         1\n"
        );
    }
}

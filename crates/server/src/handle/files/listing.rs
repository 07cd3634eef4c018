//! A folder's listing: HTML for people, JSON for programs.
//!
//! Folders come first. Columns are sorted by links (`?sort=size&order=desc`), so no script is
//! needed. Names are bytes: links carry them exactly, percent-encoded, and what is shown is their
//! nearest text. A name that no request can carry (see `route::target`) is shown without a link.

mod order;

pub use order::{Sort, SortDirection, SortKey};

use std::io::Write;

use super::super::html::{STYLE, escape};
use crate::route::percent::{UrlPart, encode};
use crate::route::target::can_be_segment;
use crate::step::date::{UnixSeconds, format_rfc3339};

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingEntry {
    /// The name alone, as the file system has it.
    pub name: Vec<u8>,
    /// Folder or file.
    pub kind: EntryKind,
    /// Size of a file, in bytes.
    pub size: u64,
    /// When it was changed last.
    pub modified_unix: UnixSeconds,
}

/// What an entry leads to; a symbolic link is what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file.
    File,
}

/// What is shown of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Its entries, in any order.
    pub entries: Vec<ListingEntry>,
    /// There are more, which are left out.
    pub is_cut: bool,
}

/// The listing as a page. `path` is the folder's, in normal form, with its final slash.
pub fn html(path: &[u8], contents: Contents, sort: Sort) -> Vec<u8> {
    let mut entries = contents.entries;
    sort.apply(&mut entries);
    let mut out = Vec::with_capacity(4096 + entries.len() * 320);
    out.extend_from_slice(
        b"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
    );
    out.extend_from_slice(
        b"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
    );
    out.extend_from_slice(b"<title>Index of ");
    escape(path, &mut out);
    out.extend_from_slice(b"</title>\n<style>\n");
    out.extend_from_slice(STYLE.as_bytes());
    out.extend_from_slice(include_bytes!("listing.css"));
    out.extend_from_slice(b"</style>\n</head>\n<body>\n");
    out.extend_from_slice(SYMBOLS.as_bytes());
    out.extend_from_slice(b"<main>\n<h1>");
    breadcrumbs(path, &mut out);
    out.extend_from_slice(b"</h1>\n<table>\n<caption>Folders and files in ");
    escape(path, &mut out);
    out.extend_from_slice(b"</caption>\n<thead>\n<tr>");
    for (key, title) in COLUMNS {
        column_head(key, title, sort, &mut out);
    }
    out.extend_from_slice(b"</tr>\n</thead>\n<tbody>\n");
    if path != b"/" {
        out.extend_from_slice(PARENT_ROW.as_bytes());
    }
    for entry in &entries {
        row(entry, &mut out);
    }
    out.extend_from_slice(b"</tbody>\n</table>\n</main>\n");
    footer(&entries, contents.is_cut, &mut out);
    out.extend_from_slice(b"</body>\n</html>\n");
    out
}

/// The listing as a JSON array of `{name, type, size, modified}`; a folder's size is null.
pub fn json(contents: Contents, sort: Sort) -> Vec<u8> {
    let mut entries = contents.entries;
    sort.apply(&mut entries);
    let rows = entries.iter().map(|entry| {
        let (kind, size) = match entry.kind {
            EntryKind::Folder => ("folder", None),
            EntryKind::File => ("file", Some(entry.size)),
        };
        let name = String::from_utf8_lossy(&entry.name);
        let modified = format_rfc3339(entry.modified_unix);
        let modified = String::from_utf8_lossy(&modified);
        format!(
            "{{\"name\":{},\"type\":\"{kind}\",\"size\":{},\"modified\":\"{modified}\"}}",
            serde_json::Value::from(&*name),
            size.map_or("null".to_owned(), |size| size.to_string()),
        )
    });
    let rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        return b"[]\n".to_vec();
    }
    format!("[\n{}\n]\n", rows.join(",\n")).into_bytes()
}

const COLUMNS: [(SortKey, &str); 3] = [
    (SortKey::Name, "Name"),
    (SortKey::Size, "Size"),
    (SortKey::Time, "Modified (UTC)"),
];

/// Pictures are drawn once and used by every row.
const SYMBOLS: &str = concat!(
    "<svg hidden><symbol id=\"folder\" viewBox=\"0 0 16 16\">",
    "<path d=\"M1.5 3.5h4.6l1.6 2h6.8v8h-13z\"/></symbol>",
    "<symbol id=\"file\" viewBox=\"0 0 16 16\"><path d=\"M3.5 1.5h5.6l3.4 3.4v9.6h-9zM9 1.5V5h3.5\"/></symbol>",
    "<symbol id=\"up\" viewBox=\"0 0 16 16\"><path d=\"M8 13.5v-11M3.5 7 8 2.5 12.5 7\"/></symbol></svg>\n",
);

const PARENT_ROW: &str = concat!(
    "<tr><th scope=\"row\"><a href=\"../\"><svg aria-hidden=\"true\"><use href=\"#up\"/></svg>",
    "Parent folder</a></th><td class=\"size\"></td><td></td></tr>\n",
);

/// The path, every folder of it a link up.
fn breadcrumbs(path: &[u8], out: &mut Vec<u8>) {
    let folders: Vec<&[u8]> = path
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
        .collect();
    for (index, name) in [&b""[..]].iter().chain(&folders).enumerate() {
        let name: &[u8] = if index == 0 { b"Home" } else { name };
        if index == folders.len() {
            escape(name, out);
        } else {
            out.extend_from_slice(b"<a href=\"");
            out.extend_from_slice(&b"../".repeat(folders.len() - index));
            out.extend_from_slice(b"\">");
            escape(name, out);
            out.extend_from_slice(b"</a>");
        }
        out.extend_from_slice(b"<span>/</span>");
    }
}

fn column_head(key: SortKey, title: &str, sort: Sort, out: &mut Vec<u8>) {
    let mut next = Sort {
        key,
        order: key.first_order(),
    };
    let mut state = String::new();
    if key == sort.key {
        next.order = sort.order.reversed();
        state = format!(" aria-sort=\"{}\"", sort.order.aria());
    }
    let class = if key == SortKey::Size {
        " class=\"size\""
    } else {
        ""
    };
    let arrow = if key == sort.key {
        sort.order.arrow()
    } else {
        ""
    };
    append(
        out,
        format_args!(
            "<th scope=\"col\"{class}{state}><a href=\"?sort={}&amp;order={}\">{title}{arrow}</a></th>",
            next.key.word(),
            next.order.word()
        ),
    );
}

fn row(entry: &ListingEntry, out: &mut Vec<u8>) {
    let is_folder = entry.kind == EntryKind::Folder;
    let slash = if is_folder { "/" } else { "" };
    let picture = if is_folder { "folder" } else { "file" };
    let has_link = can_be_segment(&entry.name);
    out.extend_from_slice(b"<tr><th scope=\"row\">");
    if has_link {
        out.extend_from_slice(b"<a href=\"");
        encode(&entry.name, UrlPart::Value, out);
        append(out, format_args!("{slash}\">"));
    }
    append(
        out,
        format_args!("<svg aria-hidden=\"true\"><use href=\"#{picture}\"/></svg>"),
    );
    escape(&entry.name, out);
    append(
        out,
        format_args!("{slash}{}</th>", if has_link { "</a>" } else { "" }),
    );
    if is_folder {
        out.extend_from_slice(b"<td class=\"size\"></td>");
    } else {
        let (size, exact) = (HumanSize(entry.size), Count(entry.size, "byte"));
        append(
            out,
            format_args!("<td class=\"size\" title=\"{exact}\">{size}</td>"),
        );
    }
    let time = format_rfc3339(entry.modified_unix);
    let time = String::from_utf8_lossy(&time);
    let (day, clock) = (&time[..10], &time[11..16]);
    append(
        out,
        format_args!("<td><time datetime=\"{time}\">{day}<span> {clock}</span></time></td></tr>\n"),
    );
}

fn footer(entries: &[ListingEntry], is_cut: bool, out: &mut Vec<u8>) {
    let files = entries.iter().filter(|entry| entry.kind == EntryKind::File);
    let file_count = files.clone().count() as u64;
    let folder_count = entries.len() as u64 - file_count;
    let total = files.fold(0u64, |total, entry| total.saturating_add(entry.size));
    let text = match (folder_count, file_count) {
        (0, 0) => "This folder is empty".to_owned(),
        (folders, 0) => Count(folders, "folder").to_string(),
        (0, files) => format!("{}, {}", Count(files, "file"), HumanSize(total)),
        (folders, files) => {
            format!(
                "{}, {}, {}",
                Count(folders, "folder"),
                Count(files, "file"),
                HumanSize(total)
            )
        }
    };
    let more = if is_cut {
        "; the folder has more, which are not listed"
    } else {
        ""
    };
    append(out, format_args!("<footer>{text}{more}</footer>\n"));
}

/// A number of things.
struct Count(u64, &'static str);

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}{}",
            self.0,
            self.1,
            if self.0 == 1 { "" } else { "s" }
        )
    }
}

/// A size with three digits at most before its unit, and one decimal below ten.
struct HumanSize(u64);

impl std::fmt::Display for HumanSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut unit = 0;
        let mut divisor = 1u128;
        let size = u128::from(self.0);
        // What would be rounded to 1024 goes up to the next unit.
        while (size * 2 + divisor) / (divisor * 2) >= 1024 {
            divisor *= 1024;
            unit += 1;
        }
        let tenths = (size * 20 + divisor) / (divisor * 2);
        if unit > 0 && tenths < 100 {
            return write!(f, "{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]);
        }
        write!(
            f,
            "{} {}",
            (size * 2 + divisor) / (divisor * 2),
            UNITS[unit]
        )
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes every byte");
}

#[cfg(test)]
mod tests;

//! The order of a listing, as its links say it.

use std::cmp::Ordering;

use super::{EntryKind, ListingEntry};

/// How a listing is sorted. Folders come first in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub key: SortKey,
    /// In which direction.
    pub order: SortDirection,
}

/// What a listing is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// By name, as people count: `file9` before `file10`, capital letters like small ones.
    #[default]
    Name,
    /// By size; folders by name.
    Size,
    /// By time of the last change.
    Time,
}

/// A direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortDirection {
    /// Smallest, oldest, nearest to A first.
    #[default]
    Ascending,
    /// The other way round.
    Descending,
}

impl Sort {
    /// Reads `sort=name|size|time` and `order=asc|desc` from a query; the rest of it is ignored.
    pub fn from_query(query: Option<&[u8]>) -> Sort {
        let mut key = SortKey::default();
        let mut order = None;
        for pair in query.unwrap_or_default().split(|&byte| byte == b'&') {
            match pair {
                b"sort=name" => key = SortKey::Name,
                b"sort=size" => key = SortKey::Size,
                b"sort=time" => key = SortKey::Time,
                b"order=asc" => order = Some(SortDirection::Ascending),
                b"order=desc" => order = Some(SortDirection::Descending),
                _ => {}
            }
        }
        Sort {
            key,
            order: order.unwrap_or(key.first_order()),
        }
    }

    pub(super) fn apply(self, entries: &mut [ListingEntry]) {
        entries.sort_unstable_by(|one, other| {
            let by_key = match self.key {
                SortKey::Name => by_name(one, other),
                SortKey::Size if one.kind == EntryKind::File => one.size.cmp(&other.size),
                SortKey::Size => Ordering::Equal,
                SortKey::Time => one.modified_unix.cmp(&other.modified_unix),
            };
            let directed = match self.order {
                SortDirection::Ascending => by_key,
                SortDirection::Descending => by_key.reverse(),
            };
            one.kind
                .cmp(&other.kind)
                .then(directed)
                .then_with(|| by_name(one, other))
        });
    }
}

impl SortKey {
    /// The direction that a first click on a column asks for.
    pub(super) fn first_order(self) -> SortDirection {
        match self {
            SortKey::Name => SortDirection::Ascending,
            SortKey::Size | SortKey::Time => SortDirection::Descending,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            SortKey::Name => "name",
            SortKey::Size => "size",
            SortKey::Time => "time",
        }
    }
}

impl SortDirection {
    pub(super) fn reversed(self) -> SortDirection {
        match self {
            SortDirection::Ascending => SortDirection::Descending,
            SortDirection::Descending => SortDirection::Ascending,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            SortDirection::Ascending => "asc",
            SortDirection::Descending => "desc",
        }
    }

    pub(super) fn aria(self) -> &'static str {
        match self {
            SortDirection::Ascending => "ascending",
            SortDirection::Descending => "descending",
        }
    }

    pub(super) fn arrow(self) -> &'static str {
        match self {
            SortDirection::Ascending => "<span aria-hidden=\"true\"> \u{2191}</span>",
            SortDirection::Descending => "<span aria-hidden=\"true\"> \u{2193}</span>",
        }
    }
}

fn by_name(one: &ListingEntry, other: &ListingEntry) -> Ordering {
    natural(&one.name, &other.name).then_with(|| one.name.cmp(&other.name))
}

/// Runs of digits compare by their value, letters without regard to case.
fn natural(mut one: &[u8], mut other: &[u8]) -> Ordering {
    loop {
        let (Some(&left), Some(&right)) = (one.first(), other.first()) else {
            return one.len().cmp(&other.len());
        };
        let compared = if left.is_ascii_digit() && right.is_ascii_digit() {
            let (left, right) = (take_digits(&mut one), take_digits(&mut other));
            left.len().cmp(&right.len()).then_with(|| left.cmp(right))
        } else {
            (one, other) = (&one[1..], &other[1..]);
            left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase())
        };
        if compared.is_ne() {
            return compared;
        }
    }
}

/// Takes a run of digits off and gives it without leading zeros.
fn take_digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

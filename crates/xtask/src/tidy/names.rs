//! Rules about what holds the house together: names of types, and circles of rooms.

use std::collections::{BTreeMap, BTreeSet};

use super::report::TidyReport;
use super::tree::{TextFile, Tree};

/// How many types of the workspace may have one name.
const TYPES_OF_A_NAME_MAX: usize = 2;
/// Names of more: a request of clients, of the admin API's answers, and of a measurement, whose
/// schemas are published.
const NAMES_OF_MORE: &[&str] = &["Request"];

/// Words before the name of a type where it is made.
const MAKE_TYPES: &[&str] = &["struct ", "enum ", "trait ", "union "];

pub(super) fn types_of_a_name(tree: &Tree, report: &mut TidyReport) {
    let mut types: BTreeMap<&str, Vec<(&TextFile, usize)>> = BTreeMap::new();
    for (file, source) in tree.product().filter(|(file, _)| !tree.is_test(file)) {
        let mut start = 0;
        for line in source.code.split_inclusive('\n') {
            if let Some(name) = type_made(line)
                && !source.in_test(start)
            {
                types
                    .entry(name)
                    .or_default()
                    .push((file, source.line(start)));
            }
            start += line.len();
        }
    }
    for (name, places) in types {
        if places.len() <= TYPES_OF_A_NAME_MAX || NAMES_OF_MORE.contains(&name) {
            continue;
        }
        for (file, line) in &places[TYPES_OF_A_NAME_MAX..] {
            let (first, _) = places[0];
            let count = places.len();
            let message = format!("{count} types are called `{name}`, one in {}", first.path);
            report.add(&file.path, *line, message);
        }
    }
}

/// The name of the type that a line begins to make.
fn type_made(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        rest = match public.strip_prefix('(') {
            Some(scope) => scope.split_once(") ")?.1,
            None => public,
        };
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let name = MAKE_TYPES.iter().find_map(|word| rest.strip_prefix(word))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &name[..end.unwrap_or(name.len())];
    name.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(name)
}

/// Most rooms of a crate in one circle. A room is a first file or folder below `src`.
const CIRCLE_ROOMS_MAX: usize = 3;

pub(super) fn circles(tree: &Tree, report: &mut TidyReport) {
    let mut crates: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (file, source) in tree.product().filter(|(file, _)| !tree.is_test(file)) {
        let Some((name, rest)) = file.crate_and_rest() else {
            continue;
        };
        let Some(room) = rest.strip_prefix("src/").map(room_of) else {
            continue;
        };
        let wanted = crates.entry(name).or_default().entry(room).or_default();
        for at in source.find("crate::") {
            if source.in_test(at) {
                continue;
            }
            let path = &source.code[at + "crate::".len()..];
            let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
            wanted.insert(&path[..end.unwrap_or(path.len())]);
        }
    }
    for (name, rooms) in crates {
        let circle = largest_circle(&rooms);
        if circle.len() > CIRCLE_ROOMS_MAX {
            let circle: Vec<&str> = circle.into_iter().collect();
            let message = format!("{} import each other in a circle", circle.join(", "));
            report.add(&format!("crates/{name}/src/lib.rs"), 1, message);
        }
    }
}

/// The room a file below `src` stands in; `lib.rs` and `main.rs` are none that anybody imports.
fn room_of(rest: &str) -> &str {
    let first = rest.split('/').next().unwrap_or(rest);
    first.strip_suffix(".rs").unwrap_or(first)
}

fn largest_circle<'a>(rooms: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let reach = |from: &'a str| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(room) = todo.pop() {
            for next in rooms.get(room).into_iter().flatten() {
                if rooms.contains_key(next) && *next != room && seen.insert(*next) {
                    todo.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        rooms.keys().map(|room| (*room, reach(room))).collect();
    let circles = rooms.keys().map(|room| {
        let others = reached[room].iter();
        let back = others.filter(|other| reached[**other].contains(room));
        back.copied().collect::<BTreeSet<&str>>()
    });
    circles.max_by_key(BTreeSet::len).unwrap_or_default()
}

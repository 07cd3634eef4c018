//! Tests of the tables of rows.

use super::*;
use crate::server::ServerSoftware;
use std::path::PathBuf;

fn site() -> ComparisonSite {
    ComparisonSite {
        root: PathBuf::from("/w"),
        has_many: true,
        copy_bytes: 9000,
        stored: PathBuf::from("/s"),
        own_file_system: "ext4".to_owned(),
        cgi: PathBuf::from("/c"),
        certificate: Some(crate::site::CertificatePaths {
            certificate: "c".to_owned(),
            key: "k".to_owned(),
        }),
        c: Some(PathBuf::from("/c/program")),
        module: Some(PathBuf::from("/m")),
        resident: Some(PathBuf::from("/c/resident")),
        visit: Some(PathBuf::from("/c/visit")),
        select: Some(crate::site::DatabasePaths {
            program: PathBuf::from("/c/select"),
            database: PathBuf::from("/item.db"),
        }),
        pages: PathBuf::from("/p"),
        interpreters: vec!["sh", "perl", "python3"],
        php: Some(PathBuf::from("/usr/bin/php-cgi")),
        hobs: Some(crate::site::HobCertificates {
            authority: "a".to_owned(),
            pair: crate::site::CertificatePaths {
                certificate: "c".to_owned(),
                key: "k".to_owned(),
            },
        }),
        lacks: vec![],
    }
}

fn servers() -> Vec<Installed> {
    let all = [
        ("hob", ServerSoftware::Hob),
        ("nginx", ServerSoftware::Nginx),
        ("apache", ServerSoftware::Apache),
        ("php-fpm", ServerSoftware::Fpm),
        ("uwsgi", ServerSoftware::Uwsgi),
        ("granian", ServerSoftware::Granian),
    ];
    all.map(|(name, kind)| Installed {
        name: name.to_owned(),
        kind,
        program: PathBuf::from(name),
        version: "1.0".to_owned(),
        front: Some(PathBuf::from("nginx")),
        is_named: false,
    })
    .into()
}

#[test]
fn every_row_has_a_name_of_its_own_and_hob_in_it_first() {
    let rows = rows(&servers(), &site());
    let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rows.len());
    for row in &rows {
        assert_eq!(row.entrants[0].server, "hob", "{}", row.id);
    }
}

#[test]
fn every_printed_figure_has_a_row_beside_which_it_stands() {
    let rows = rows(&servers(), &site());
    let shown: Vec<&String> = rows.iter().flat_map(|row| &row.then).collect();
    let told = crate::report::told_ids();
    for then in hob_load::history::figures() {
        // Beside a row, in a ratio or a claim; stages and a process alone beside `hob cost`.
        let is_elsewhere = then.id.starts_with('W') || then.id.starts_with("D.exchange");
        let is_shown = shown.iter().any(|id| **id == then.id) || told.contains(&then.id);
        assert!(is_shown || is_elsewhere, "{}", then.id);
    }
}

#[test]
fn programs_and_large_files_are_asked_over_a_connection_each_and_over_kept_ones() {
    let rows = rows(&servers(), &site());
    let has = |id: &str| rows.iter().any(|row| row.id == id);
    let is_of = |row: &&ComparisonRow| {
        let first = row.id.split('.').next();
        let is_secure_script = row.is_secure && !row.id.starts_with("script.c.");
        let is_script = first == Some("script") && !is_secure_script;
        is_script || row.id.starts_with("large.h1.") || first == Some("ways")
    };
    let kept: Vec<&ComparisonRow> = rows.iter().filter(is_of).collect();
    let kept = { kept.iter() }.filter(|row| row.id.contains(".keep."));
    let mut count = 0;
    for row in kept {
        let other = row.id.replacen(".keep.", ".close.", 1);
        assert!(has(&other), "{other}");
        assert_eq!(row.reuse, hob_load::Reuse::KeepAlive, "{}", row.id);
        count += 1;
    }
    assert!(count > 60, "{count}");
    let closing = rows.iter().filter(|row| row.id.contains(".close."));
    for row in closing {
        assert_eq!(row.reuse, hob_load::Reuse::PerRequest, "{}", row.id);
        assert!(
            row.title.contains("one connection per request"),
            "{}",
            row.id
        );
    }
    // Beside the mode in which they were measured.
    let beside = |id: &str| &rows.iter().find(|row| row.id == id).unwrap().then;
    assert_eq!(
        beside("script.c.clear.close.0k.c10"),
        &["A.script.cgi.0k.c10", "A.script.cgiplus.0k.c10"]
    );
    assert_eq!(
        beside("script.c.clear.keep.0k.c10"),
        &["B.script.all.0k.c10"]
    );
    assert_eq!(
        beside("ways.clear.close.1k.c1"),
        &["E.plain.ways.1k", "E.capacity.plain.1k"]
    );
}

#[test]
fn other_builds_of_hob_are_in_each_row_of_files_and_programs() {
    let mut servers = servers();
    servers.insert(
        1,
        Installed {
            name: "other hob".to_owned(),
            is_named: true,
            ..servers[0].clone()
        },
    );
    let mut count = 0;
    for row in rows(&servers, &site()) {
        let ways = |server: &str| -> Vec<String> {
            let own = row.entrants.iter().filter(|one| one.server == server);
            own.map(|one| way_of(one).to_owned()).collect()
        };
        // In the rows of file systems a server is started for each of its cells.
        if matches!(row.group, RowGroup::Cost | RowGroup::Stored) {
            continue;
        }
        // That of contents in memory is one of this build alone.
        let of_both = |way: &String| way != "kept in memory";
        let own: Vec<String> = ways("hob").into_iter().filter(of_both).collect();
        assert_eq!(own, ways("other hob"), "{}", row.id);
        count += own.len();
    }
    assert!(count > 200, "{count}");
}

#[test]
fn what_a_release_is_told_of_has_a_column() {
    let rows = rows(&servers(), &site());
    let work = rows
        .iter()
        .flat_map(|row| row.entrants.iter().map(move |one| (row, one)));
    let classes: Vec<&str> = work
        .filter_map(|(row, one)| crate::report::class_of(row, way_of(one)))
        .collect();
    let is_used = |class: &&str| classes.contains(class);
    assert!(crate::report::CLASSES.iter().all(is_used), "{classes:?}");
    let is_told = |class: &&str| crate::report::CLASSES.contains(class);
    assert!(classes.iter().all(is_told), "{classes:?}");
}

#[test]
fn claims_look_in_cells_that_are_there() {
    let rows = rows(&servers(), &site());
    // There where Apache has the module that was built for it.
    let is_built = |way: &str| way == "apache module";
    for (id, way) in crate::report::claimed_cells() {
        let row = rows.iter().find(|row| row.id == id);
        let row = row.unwrap_or_else(|| panic!("no row {id}"));
        let own = [format!("hob{way}"), format!("hob {way}"), way.to_owned()];
        let is_there = |one: &Entrant| own.iter().any(|label| one.label == label.trim());
        assert!(
            row.entrants.iter().any(is_there) || is_built(way),
            "{id}: {way}"
        );
    }
}

#[test]
fn scopes_grow_and_names_choose_whole_words() {
    let all = rows(&servers(), &site());
    let count = |scope| chosen(all.clone(), scope, &[]).len();
    assert!(count(Scope::Quick) < count(Scope::Usual));
    assert!(count(Scope::Usual) < count(Scope::Full));
    assert_eq!(count(Scope::Full), all.len());
    let of = |part: &str| chosen(all.clone(), Scope::Quick, &[part.to_owned()]);
    assert_eq!(of("file.h1.clear.keep.1k.c1").len(), 1);
    assert!(of(".clear.").len() > of("file.h1.clear").len());
    assert_eq!(of("nonsense"), []);
    assert_eq!(of("."), []);
}

#[test]
fn sweep_changes_one_size_at_a_time_and_has_the_default_first() {
    let rows = sweep(&servers(), &site());
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    for wanted in [
        "sweep.piece.shm.clear.keep.32m.c1",
        "sweep.buffer.shm.clear.keep.32m.c1",
        "sweep.chunks.shm.clear.keep.32m.c1",
        "sweep.chunk.shm.clear.keep.32m.c1",
    ] {
        assert!(ids.contains(&wanted), "no {wanted} in {ids:?}");
    }
    for row in &rows {
        let first = &row.entrants[0];
        assert_eq!(first.extra, crate::server::Extra::None, "{}", row.id);
        assert!(first.label.ends_with("(default)"), "{}", row.id);
        let others: std::collections::BTreeSet<_> = row.entrants[1..]
            .iter()
            .map(|one| (one.extra, &one.path))
            .collect();
        assert_eq!(others.len(), row.entrants.len() - 1, "{}", row.id);
    }
}

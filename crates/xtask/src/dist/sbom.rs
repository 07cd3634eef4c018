//! What of others is in the program: a bill of materials in CycloneDX's JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::Release;
use crate::run;

/// A package of others that is linked into the program.
struct Component {
    name: String,
    version: String,
    licence: String,
    sha256: Option<String>,
}

/// Packages of others, and of everything what it needs, both by their references.
#[derive(Default)]
struct Graph {
    components: BTreeMap<String, Component>,
    needs: BTreeMap<String, BTreeSet<String>>,
}

/// What the program is called in its bill.
const PROGRAM: &str = "hob";

/// Writes `hob-VERSION-MACHINE.cdx.json`.
pub(super) fn write(release: &Release) -> Result<PathBuf, String> {
    let mut tree = run::cargo();
    tree.args(["tree", "--locked", "-p", "hob", "--edges", "normal"]);
    tree.args(["--prefix", "depth", "--no-dedupe", "--format", "{p}|{l}"]);
    tree.args(["--target", release.machine.triple]);
    let tree = run::captured(tree.current_dir(release.root))?;
    let lock = release.root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|error| format!("Cargo.lock: {error}"))?;
    let path = release.folder.join(format!("{}.cdx.json", release.name()));
    let text = bill(release.version, &graph(&tree, &lock));
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Every package once; ours, which have a path, are the program. A line begins with its depth.
/// (`cargo metadata` would tell of features that only the rest of the workspace asks for.)
fn graph(tree: &str, lock: &str) -> Graph {
    let sums = checksums(lock);
    let (mut graph, mut above) = (Graph::default(), Vec::<String>::new());
    for line in tree.lines() {
        let (package, licence) = line.split_once('|').unwrap_or((line, ""));
        let name = package.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let depth = package[..package.len() - name.len()].parse().unwrap_or(0);
        let mut words = name.split(' ').map(str::to_string);
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        let version = version.trim_start_matches('v').to_string();
        let mut own = PROGRAM.to_string();
        if !package.contains(" (/") {
            own = format!("pkg:cargo/{name}@{version}");
            let component = Component {
                sha256: sums.get(&(name.clone(), version.clone())).cloned(),
                // An older way to write OR.
                licence: licence.replace('/', " OR "),
                name,
                version,
            };
            graph.components.insert(own.clone(), component);
        }
        graph.needs.entry(own.clone()).or_default();
        above.truncate(depth);
        if let Some(parent) = above.last().filter(|parent| **parent != own) {
            let needed = graph.needs.entry(parent.clone()).or_default();
            needed.insert(own.clone());
        }
        above.push(own);
    }
    graph
}

/// The checksums of Cargo.lock, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_matches('"').to_string())
    };
    let blocks = lock.split("[[package]]");
    let package = |block| {
        let name = (value(block, "name = ")?, value(block, "version = ")?);
        Some((name, value(block, "checksum = ")?))
    };
    blocks.filter_map(package).collect()
}

/// Names, versions and licences of crates have no character that JSON would escape.
fn bill(version: &str, graph: &Graph) -> String {
    let components: Vec<String> = graph.components.iter().map(component).collect();
    let needs: Vec<String> = graph.needs.iter().map(dependency).collect();
    format!(
        "{{\n \"bomFormat\": \"CycloneDX\",\n \"specVersion\": \"1.5\",\n \"version\": 1,\n \
         \"metadata\": {{\"component\": {{\"type\": \"application\", \"bom-ref\": \"{PROGRAM}\", \
         \"name\": \"hob\", \"version\": \"{version}\", \
         \"licenses\": [{{\"license\": {{\"id\": \"Apache-2.0\"}}}}]}}}},\n \
         \"components\": [\n{}\n ],\n \"dependencies\": [\n{}\n ]\n}}\n",
        components.join(",\n"),
        needs.join(",\n")
    )
}

fn component((purl, component): (&String, &Component)) -> String {
    let Component {
        name,
        version,
        licence,
        sha256,
    } = component;
    let hash = sha256.as_ref().map_or(String::new(), |sum| {
        format!(", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": \"{sum}\"}}]")
    });
    format!(
        "  {{\"type\": \"library\", \"bom-ref\": \"{purl}\", \"name\": \"{name}\", \
         \"version\": \"{version}\", \"purl\": \"{purl}\", \
         \"licenses\": [{{\"expression\": \"{licence}\"}}]{hash}}}"
    )
}

fn dependency((own, needs): (&String, &BTreeSet<String>)) -> String {
    let needs: Vec<String> = needs.iter().map(|other| format!("\"{other}\"")).collect();
    let needs = needs.join(", ");
    format!("  {{\"ref\": \"{own}\", \"dependsOn\": [{needs}]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_others_are_told_once_with_checksum_licence_and_what_needs_them() {
        let tree = "0hob v0.1.0 (/src/crates/hob)|Apache-2.0\n\
                    1hob-http v0.1.0 (/src/crates/http)|Apache-2.0\n\
                    2memchr v2.8.0|MIT\n3libc v0.2.1|MIT/Apache-2.0\n\
                    1libc v0.2.1|MIT/Apache-2.0\n";
        let lock = "[[package]]\nname = \"libc\"\nversion = \"0.2.1\"\nchecksum = \"beef\"\n";
        let bill = bill("0.1.0", &graph(tree, lock));
        assert_eq!(bill.matches("\"name\": \"libc\"").count(), 1, "{bill}");
        for part in [
            "\"expression\": \"MIT OR Apache-2.0\"",
            "\"content\": \"beef\"",
            "{\"ref\": \"hob\", \"dependsOn\": [\"pkg:cargo/libc@0.2.1\", \"pkg:cargo/memchr@2.8.0\"]}",
            "{\"ref\": \"pkg:cargo/memchr@2.8.0\", \"dependsOn\": [\"pkg:cargo/libc@0.2.1\"]}",
            "{\"ref\": \"pkg:cargo/libc@0.2.1\", \"dependsOn\": []}",
        ] {
            assert!(bill.contains(part), "{part} in {bill}");
        }
        assert!(!bill.contains("pkg:cargo/hob"), "{bill}");
    }
}

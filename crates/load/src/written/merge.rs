//! One result of those of several machines that carried out one plan together. Counts are added,
//! histograms are added; what cannot be put together is null.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::pages::merged;
use super::{SavedResult, addresses, times_of};
use crate::conduct::Shard;
use crate::measure::{IntervalSeries, Latency};
use crate::page::{count, rate, time};
use crate::report::{series, times};
use crate::threshold::Threshold;

/// Shards that began further apart did not press the server together.
const BEGIN_APART_MS_MAX: u64 = 1000;

impl SavedResult {
    /// Puts results together. Refused are those of different plans, parts that are there twice,
    /// and results that are not parts of anything.
    pub fn merge(all: &[SavedResult]) -> Result<SavedResult, String> {
        let Some(first) = all.first() else {
            return Err("there is nothing to merge".to_owned());
        };
        let shards = shards(all)?;
        for (index, other) in all.iter().enumerate() {
            let differences = differences(&first.value["plan"], &other.value["plan"]);
            if let Some(name) = differences.first() {
                return Err(format!(
                    "results 1 and {} are of different plans: {name} is {} and {}",
                    index + 1,
                    first.value["plan"][name],
                    other.value["plan"][name]
                ));
            }
        }
        let mut value = first.value.clone();
        let begun_ms = all
            .iter()
            .map(|one| one.count("begun_at_ms"))
            .min()
            .unwrap_or(0);
        let ended = all.iter().map(|one| {
            let begun = (one.count("begun_at_ms") - begun_ms) as f64 / 1e3;
            begun + one.number("elapsed_s").unwrap_or(0.0)
        });
        let elapsed = ended.fold(0.0, f64::max);
        value["begun_at"] = json!(begun_ms / 1000);
        value["begun_at_ms"] = json!(begun_ms);
        value["elapsed_s"] = json!(elapsed);
        value["interrupted"] = json!(all.iter().any(|one| one.is("interrupted")));
        let stopped = all.iter().find_map(|one| one.at("stopped").as_str());
        value["stopped"] = json!(stopped);
        let shard_count = shards[0].count;
        value["shard"] = json!(format!("{} of {shard_count}", all.len()));
        if all.len() > 1 {
            value["environment"] = Value::Null;
        }
        for group in ["requests", "connections", "bytes"] {
            value[group] = sums(all, group);
        }
        for field in ["full", "resumed"] {
            let path = format!("tls.{field}");
            value["tls"][field] = json!(all.iter().map(|one| one.count(&path)).sum::<u64>());
        }
        value["rate"] = rates(all, elapsed);
        value["status"] = by_key(all, "status", "code");
        value["failures"] = by_key(all, "failures", "kind");
        for kind in ["response", "service", "connect"] {
            let path = format!("latency.{kind}");
            let parts = all.iter().map(|one| one.at(&path));
            value["latency"][kind] = json!(times(&added(parts)?));
        }
        for group in ["urls", "steps"] {
            value[group] = parts(all, group)?;
        }
        value["series"] = json!(series(&together(all, begun_ms)?));
        value["page"] = merged(all, &value)?;
        fairness(&mut value, all);
        machines(&mut value, all);
        notes(&mut value, all, &shards);
        let mut merged = SavedResult { value };
        let judged = merged.list("thresholds").iter().map(|threshold| {
            let text = threshold["text"].as_str().unwrap_or_default();
            let parsed: Threshold = text.parse()?;
            let (value, is_crossed) = merged.judged(&parsed);
            Ok(json!({ "text": text, "value": value, "crossed": is_crossed }))
        });
        let judged = judged.collect::<Result<Vec<Value>, String>>()?;
        merged.value["thresholds"] = judged.into();
        Ok(merged)
    }

    /// The result in a few lines of text.
    pub fn summary(&self) -> String {
        let us = |path: &str| {
            self.number(path)
                .map_or_else(|| "none".to_owned(), |us| time(us * 1e3))
        };
        let mut text = format!(
            "{} ({} shards)\n{:<10} {}, {} answered, {} failed\nrate       {}/s",
            self.texts("plan.urls").next().unwrap_or_default(),
            self.text("shard"),
            self.noun(),
            count(self.count("requests.due")),
            count(self.count("requests.answered")),
            count(self.count("requests.failed")),
            rate(self.number("rate.answered_per_s").unwrap_or(0.0)),
        );
        if let Some(offered) = self.number("rate.offered_per_s") {
            text.push_str(&format!(" of {}/s due", rate(offered)));
        }
        text.push_str("\nresponse  ");
        for (name, field) in [
            ("p50", "p50_us"),
            ("p90", "p90_us"),
            ("p99", "p99_us"),
            ("p99.9", "p99_9_us"),
            ("max", "max_us"),
        ] {
            text.push_str(&format!(
                " {name} {}",
                us(&format!("latency.response.{field}"))
            ));
        }
        text.push('\n');
        let kind = if self.is("doubtful") {
            "doubtful"
        } else {
            "note"
        };
        for note in self.texts("notes") {
            text.push_str(&format!("{kind}: {note}\n"));
        }
        for threshold in self.list("thresholds") {
            let outcome = if threshold["crossed"] == false {
                "passed"
            } else {
                "FAILED"
            };
            let written = threshold["text"].as_str().unwrap_or_default();
            let shown = self.threshold_value(threshold);
            text.push_str(&format!("{outcome}: {written} is {shown}\n"));
        }
        text
    }
}

/// How evenly answers were shared out: known of client addresses alone, each of which is told.
fn fairness(value: &mut Value, all: &[SavedResult]) {
    (value["fairness"], value["fairness_urls"]) = (Value::Null, Value::Null);
    addresses::merge(value, all);
}

/// Which parts these are: all of one whole, none of them twice.
fn shards(all: &[SavedResult]) -> Result<Vec<Shard>, String> {
    let mut shards: Vec<Shard> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let text = one.text("shard");
        let shard: Shard = text.parse().map_err(|_| {
            format!(
                "result {} is not of one shard; only runs with --shard can be merged",
                index + 1
            )
        })?;
        if shards
            .first()
            .is_some_and(|first| first.count != shard.count)
        {
            return Err(format!(
                "shard {shard} and shard {} are not parts of one whole",
                shards[0]
            ));
        }
        if shards.contains(&shard) {
            return Err(format!("shard {shard} is there twice"));
        }
        shards.push(shard);
    }
    Ok(shards)
}

/// In what two plans differ; where the server was found and which process was watched may differ
/// from machine to machine. What one of them does not tell, because an older hob wrote it, is not
/// held against the other.
pub(super) fn differences(one: &Value, other: &Value) -> Vec<String> {
    const OWN: &[&str] = &["address", "pid"];
    let empty = Map::new();
    let [one, other] = [one, other].map(|plan| plan.as_object().unwrap_or(&empty));
    let both = one
        .iter()
        .filter_map(|(name, value)| Some((name, value, other.get(name)?)));
    both.filter(|(name, value, other)| !OWN.contains(&name.as_str()) && value != other)
        .map(|(name, ..)| name.clone())
        .collect()
}

/// The sums of all fields of a group of counts.
fn sums(all: &[SavedResult], group: &str) -> Value {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for fields in all.iter().filter_map(|one| one.at(group).as_object()) {
        for (name, value) in fields {
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(value.as_u64().unwrap_or(0));
        }
    }
    json!(sums)
}

fn rates(all: &[SavedResult], elapsed: f64) -> Value {
    let offered = all.iter().map(|one| one.number("rate.offered_per_s"));
    let offered: Option<f64> = offered.sum();
    let answered: u64 = all.iter().map(|one| one.count("requests.answered")).sum();
    let per_second = if elapsed > 0.0 {
        answered as f64 / elapsed
    } else {
        0.0
    };
    json!({ "offered_per_s": offered, "answered_per_s": per_second })
}

/// Entries of lists put together by a key; their `count` is added, the rest is of the first one.
fn by_key(all: &[SavedResult], list: &str, key: &str) -> Value {
    sums_by_key(all.iter().flat_map(|one| one.list(list)), key)
}

fn entries(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn sums_by_key<'a>(all: impl Iterator<Item = &'a Value>, key: &str) -> Value {
    let mut found: Vec<Value> = Vec::new();
    for entry in all {
        match found.iter_mut().find(|known| known[key] == entry[key]) {
            Some(known) => {
                let [one, other] = [&*known, entry].map(|part| part["count"].as_u64().unwrap_or(0));
                let sum = one.saturating_add(other);
                known["count"] = json!(sum);
            }
            None => found.push(entry.clone()),
        }
    }
    found.sort_by_key(|entry| entry[key].as_u64());
    found.into()
}

fn added<'a>(parts: impl Iterator<Item = &'a Value>) -> Result<Latency, String> {
    let mut whole = Latency::new();
    for part in parts {
        let part = times_of(part).ok_or("a histogram of times cannot be read")?;
        whole.merge(&part);
    }
    Ok(whole)
}

/// URLs or steps, which all plans have in the same order.
fn parts(all: &[SavedResult], group: &str) -> Result<Value, String> {
    let mut whole = all[0].list(group).to_vec();
    for (index, entry) in whole.iter_mut().enumerate() {
        let every = || all.iter().filter_map(|one| one.list(group).get(index));
        for field in ["answered", "failed"] {
            let sum: u64 = every().filter_map(|one| one[field].as_u64()).sum();
            entry[field] = json!(sum);
        }
        entry["failures"] = sums_by_key(every().flat_map(|one| entries(&one["failures"])), "kind");
        if group == "urls" {
            entry["fairness"] = Value::Null;
        }
        for kind in ["response", "service"] {
            entry[kind] = json!(times(&added(every().map(|one| &one[kind]))?));
        }
    }
    Ok(whole.into())
}

/// What happened when, on the clock of the first to begin.
fn together(all: &[SavedResult], begun_ms: u64) -> Result<IntervalSeries, String> {
    let mut whole = IntervalSeries::of(1, Vec::new());
    for one in all {
        let later_ns = (one.count("begun_at_ms") - begun_ms).saturating_mul(1_000_000);
        whole.add_all(&one.series()?, later_ns);
    }
    Ok(whole)
}

/// Of several machines: the mean CPU time of a request, and of shares the largest.
fn machines(value: &mut Value, all: &[SavedResult]) {
    let answered = |one: &SavedResult| one.count("requests.answered") as f64;
    let whole: f64 = all.iter().map(answered).sum();
    let cost = |path: &str| {
        let parts = all
            .iter()
            .filter_map(|one| Some(one.number(path)? * answered(one)));
        let parts: Vec<f64> = parts.collect();
        (parts.len(), parts.iter().sum::<f64>() / whole.max(1.0))
    };
    let (count, client) = cost("client.cpu_us_per_request");
    value["client"]["cpu_us_per_request"] = json!((count == all.len()).then_some(client));
    for field in ["cpu_us_per_request", "cgroup_cpu_us_per_request"] {
        // Watched from one place, it is the cost of all requests, whoever sent them.
        let (count, server) = cost(&format!("server.{field}"));
        value["server"][field] = json!((count == 1).then_some(server));
    }
    for field in ["memory_bytes", "cgroup_memory_bytes"] {
        let path = format!("server.{field}");
        let found: Vec<&Value> = all
            .iter()
            .map(|one| one.at(&path))
            .filter(|one| !one.is_null())
            .collect();
        value["server"][field] = if found.len() == 1 {
            found[0].clone()
        } else {
            Value::Null
        };
    }
    for path in [
        "client.busy_percent",
        "machine.busy_percent",
        "machine.steal_percent",
    ] {
        let most = all
            .iter()
            .filter_map(|one| one.number(path))
            .fold(0.0, f64::max);
        if let Some(field) = value.pointer_mut(&format!("/{}", path.replace('.', "/"))) {
            *field = json!(most);
        }
    }
}

fn notes(value: &mut Value, all: &[SavedResult], shards: &[Shard]) {
    let mut notes = Vec::new();
    let mut is_doubtful = all.iter().any(|one| one.is("doubtful"));
    for (one, shard) in all.iter().zip(shards) {
        notes.extend(
            one.texts("notes")
                .map(|note| format!("shard {shard}: {note}")),
        );
    }
    let missing = shards[0].count as usize - shards.len();
    if missing > 0 {
        is_doubtful = true;
        notes.push(format!(
            "{missing} of {} shards are missing, and with them their part of the load",
            shards[0].count
        ));
    }
    let begun = || all.iter().map(|one| one.count("begun_at_ms"));
    let apart = begun().max().unwrap_or(0) - begun().min().unwrap_or(0);
    if apart > BEGIN_APART_MS_MAX {
        is_doubtful = true;
        notes.push(format!(
            "the shards began {:.1} s apart; --start-at lets them begin together",
            apart as f64 / 1e3
        ));
    }
    value["doubtful"] = json!(is_doubtful);
    value["notes"] = json!(notes);
}

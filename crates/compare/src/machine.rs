//! The environment block: what all this was measured on.

use std::fs;

use hob_load::Environment;
use schemars::JsonSchema;
use serde::Serialize;

/// Where it was measured, and facts that only a comparison has, in the order in which they are
/// shown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Machine {
    /// What else is known about it.
    more: Vec<Fact>,
    #[serde(flatten)]
    environment: Environment,
    /// Processes that wanted to run in the minute before, on the average.
    #[serde(skip)]
    pub(crate) load_before: f64,
}

/// What else is known about a machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Fact {
    /// What.
    name: &'static str,
    /// How it is.
    value: String,
}

impl Machine {
    /// Looks around.
    pub(crate) fn look() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let load = read("/proc/loadavg");
        let load: Vec<&str> = load.split(' ').take(3).collect();
        let mut machine = Machine {
            environment: Environment::look(),
            load_before: load
                .first()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0.0),
            more: vec![],
        };
        machine.add("frequency", governor.trim().to_owned());
        machine.add("system", system(&read("/etc/os-release")));
        machine.add("load before", load.join(" "));
        machine
    }

    /// Adds a fact, where it could be found out.
    pub(crate) fn add(&mut self, name: &'static str, value: String) {
        if !value.is_empty() {
            self.more.push(Fact { name, value });
        }
    }

    /// All of it, for people.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = self.environment.facts();
        facts.extend(self.more.iter().map(|fact| (fact.name, fact.value.clone())));
        facts
    }
}

/// What the distribution calls itself.
fn system(text: &str) -> String {
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_is_called_as_it_calls_itself() {
        assert_eq!(
            system("ID=debian\nPRETTY_NAME=\"Debian 12\"\n"),
            "Debian 12"
        );
        assert_eq!(system(""), "");
    }

    #[test]
    fn this_machine_has_a_kernel_and_what_was_added() {
        let mut machine = Machine::look();
        machine.add("server's CPU", "0".to_owned());
        machine.add("nothing", String::new());
        let facts = machine.facts();
        let value = |wanted: &str| facts.iter().find(|(name, _)| *name == wanted);
        assert!(value("kernel").unwrap().1.contains("Linux"));
        assert_eq!(value("server's CPU").unwrap().1, "0");
        assert_eq!(value("nothing"), None);
        assert!(serde_json::json!(machine)["kernel"].is_string());
    }
}

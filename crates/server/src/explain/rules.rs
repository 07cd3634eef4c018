//! Rules about clients: which were asked for a request, where they stand in the config, and what
//! they come to.

use hob_http::status::phrase;

use super::answer::{ExplainedRule, ExplainedVerdict};
use super::told::Explanation;
use crate::config::tree::Section;
use crate::config::{ConfigSources, SCHEMA, tree_of};

/// Where rules stand in a config.
pub struct RulePlaces<'a> {
    tree: Section,
    sources: &'a ConfigSources,
}

impl RulePlaces<'_> {
    /// Of the config that was made from these sources. Reads all of it again.
    pub fn new(sources: &ConfigSources) -> RulePlaces<'_> {
        RulePlaces {
            tree: tree_of(&SCHEMA, sources),
            sources,
        }
    }

    /// The whole config as it is written.
    pub(super) fn tree(&self) -> &Section {
        &self.tree
    }

    /// Where a rule of a route stands, file and line: on the route, else on its site. `key` may
    /// name a key within a table: `access.deny`. The site and the route are counted as in the
    /// config; without a route it is the site's own.
    pub fn of_route(&self, (site, route): (usize, Option<usize>), key: &str) -> Option<String> {
        let site = self.tree.sections("site").get(site)?;
        let route = route.and_then(|route| site.sections("route").get(route));
        let (table, inner) = key.split_once('.').unwrap_or((key, ""));
        let mut sections = [route, Some(site)].into_iter().flatten();
        let section = sections.find(|section| section.given(table).is_some())?;
        let within = section.section_of(table).and_then(|of| of.given(inner));
        let given = within.or_else(|| section.given(table))?;
        Some(self.place(given.key))
    }

    /// Where a `[[ban]]` of this name stands.
    pub fn of_ban(&self, name: &str) -> Option<String> {
        let mut all = self.tree.sections("ban").iter();
        let ban = all.find(|ban| ban.text("name") == name)?;
        Some(self.place(ban.header))
    }

    fn place(&self, spot: crate::config::Spot) -> String {
        let place = self.sources.place(spot);
        format!("{}:{}", place.file, place.line)
    }
}

/// How a rule was found to hold or not.
pub(super) enum RuleOutcome {
    /// The request goes on.
    LetsIn,
    /// It does, if something else is so that is not known here.
    LetsInIf(String),
    /// It does not; or does by another rule.
    Refuses,
}

impl Explanation {
    /// Adds a rule that was asked, the key of a route or of its site, and why it says what it says.
    pub(super) fn asked_rule(
        &mut self,
        places: &RulePlaces<'_>,
        rule: &str,
        (outcome, why): (RuleOutcome, String),
    ) {
        let route = self.routes.last().filter(|route| route.mismatch.is_none());
        let place = self.site.as_ref().and_then(|site| {
            let at = (site.index, route.map(|route| route.index));
            places.of_route(at, rule)
        });
        self.rule_at(rule, place, (outcome, why));
    }

    /// The same with its place.
    pub(super) fn rule_at(
        &mut self,
        rule: &str,
        place: Option<String>,
        (outcome, why): (RuleOutcome, String),
    ) {
        let (lets_in, provided) = match outcome {
            RuleOutcome::LetsIn => (true, None),
            RuleOutcome::LetsInIf(provided) => (true, Some(provided)),
            RuleOutcome::Refuses => (false, None),
        };
        let rule = ExplainedRule {
            rule: rule.to_owned(),
            place,
            lets_in,
            provided,
            why,
        };
        // One that holds for several routes on the way is told of once.
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
    }

    /// What all of it comes to.
    pub(super) fn verdict(&self) -> ExplainedVerdict {
        // Each rule is asked only if those before let the request on, or leave it to that one.
        let refusal = self.rules.last().filter(|rule| !rule.lets_in);
        let route = self.routes.last().filter(|route| route.mismatch.is_none());
        let outcome = self.outcome(refusal.is_some());
        let by = refusal.or_else(|| self.rules.last());
        let own = route.map(|route| &route.place);
        let own = own.or_else(|| self.site.as_ref().map(|site| &site.place));
        let lets_in = self.rules.iter().filter(|rule| rule.lets_in);
        let provided = lets_in.filter_map(|rule| rule.provided.clone());
        ExplainedVerdict {
            outcome: outcome.to_owned(),
            text: self.in_words(outcome),
            rule: by.map(|rule| rule.rule.clone()),
            place: by.map_or_else(|| own.cloned(), |rule| rule.place.clone()),
            provided: match refusal {
                Some(_) => Vec::new(),
                None => provided.collect(),
            },
        }
    }

    fn outcome(&self, is_refused: bool) -> &'static str {
        let status = self.answer.status;
        let is_found = self.routes.last().is_some_and(|one| one.mismatch.is_none());
        match status {
            401 if is_refused => "sign-in",
            503 if is_refused => "down",
            300..=399 => "moved",
            _ if is_refused => "refused",
            _ if self.program.is_some() || status < 400 => "answered",
            _ if self.refused.is_some() => "invalid",
            _ if self.site.is_none() => "no-site",
            _ if self.path.as_ref().is_some_and(|path| path.normal.is_err()) => "invalid",
            _ if !is_found => "no-route",
            _ => "error",
        }
    }

    fn in_words(&self, outcome: &str) -> String {
        let status = self.answer.status;
        let status = format!("{status} {}", phrase(status));
        let handler = self.handler.as_ref().map_or("hob", |one| one.name);
        match outcome {
            "answered" if self.program.is_some() => format!("answered by {handler}"),
            "answered" => format!("answered by {handler} with {status}"),
            "sign-in" => format!("asked to sign in: {status}"),
            "down" => format!("refused for a while: {status}"),
            "moved" => format!("sent elsewhere: {status}"),
            "refused" => format!("refused: {status}"),
            _ => format!("not answered: {status}"),
        }
    }
}

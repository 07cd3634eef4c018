//! `GET /v1/explain`, which `hob explain --json` prints too. The shape is stable: `version` moves
//! when something in it changes its meaning or goes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What would answer a request, and why, in the order in which things are decided; what does not
/// apply is null.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Explanation {
    /// Of this shape.
    pub version: u32,
    /// Method of the request.
    pub method: String,
    /// URL of the request, or its path alone.
    pub url: String,
    /// Listeners that it can come in by.
    pub listeners: Vec<ExplainedListener>,
    /// Why its head is refused.
    pub refused: Option<String>,
    /// The host that is asked for.
    pub host: String,
    /// The site, and why it.
    pub site: Option<ExplainedSite>,
    /// The path.
    pub path: Option<ExplainedPath>,
    /// Routes that are tried, in order; the last is the one that matches, if one does.
    pub routes: Vec<ExplainedRoute>,
    /// What a rewrite makes of the path.
    pub rewrite: Option<ExplainedRewrite>,
    /// The path that another route answers, of the file that was found: a folder's index, or a
    /// fallback.
    pub answered_as: Option<String>,
    /// Who answers.
    pub handler: Option<ExplainedHandler>,
    /// What was found on the disk.
    pub file: Option<ExplainedFile>,
    /// What would run: the answer is its own.
    pub program: Option<ExplainedProgram>,
    /// Rules about clients that were asked, in order: the last decides.
    pub rules: Vec<ExplainedRule>,
    /// What all of it comes to.
    pub verdict: ExplainedVerdict,
    /// The answer itself.
    pub answer: ExplainedAnswer,
    /// Largest body of the request.
    pub body_bytes_max: Option<u64>,
    /// Where the line of the access log goes.
    pub log: Option<ExplainedLog>,
    /// What else should be known.
    pub notes: Vec<String>,
    /// All of it in lines for people; the API alone has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<String>>,
}

/// A listener that the request can come in by.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedListener {
    /// Its address.
    pub address: String,
    /// The URL leads here, without a proxy in front.
    pub direct: bool,
    /// Its own log.
    pub log: Option<String>,
}

/// The site, and why it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedSite {
    /// Its number, from 0.
    pub index: usize,
    /// Its names.
    pub names: Vec<String>,
    /// `name`, `wildcard` or `default`.
    pub by: String,
    /// The same in words.
    pub why: String,
    /// Where it stands in the config.
    pub place: String,
}

/// The path.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedPath {
    /// As it was sent.
    pub raw: String,
    /// In normal form.
    pub normal: Option<String>,
    /// Why it has none.
    pub refused: Option<String>,
}

/// A route that was tried.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedRoute {
    /// Its number, from 0.
    pub index: usize,
    /// Its path.
    pub path: String,
    /// Where it stands in the config.
    pub place: String,
    /// It matches.
    pub matches: bool,
    /// Why it does not.
    pub why_not: Option<String>,
    /// Its path matches, and its `when` does not hold.
    pub skipped: bool,
    /// What it captured, by name.
    pub captures: BTreeMap<String, String>,
}

/// What a rewrite makes of the path.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedRewrite {
    /// The config's template.
    pub to: String,
    /// The new path.
    pub path: Option<String>,
    /// Why there is none.
    pub refused: Option<String>,
}

/// Who answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedHandler {
    /// Its name.
    pub name: String,
    /// Its settings, as the config names them.
    pub settings: BTreeMap<String, Setting>,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// It is so, or not.
    Flag(bool),
    /// A count.
    Number(u64),
    /// One text.
    Text(String),
    /// Several.
    Texts(Vec<String>),
}

impl Setting {
    /// One line of text.
    pub(crate) fn text(text: &str) -> Setting {
        Setting::Text(text.to_owned())
    }

    /// The texts of both; what is no list is the other's.
    pub(super) fn and(self, other: Setting) -> Setting {
        match (self, other) {
            (Setting::Texts(all), Setting::Texts(more)) => {
                Setting::Texts(all.into_iter().chain(more).collect())
            }
            (_, other) => other,
        }
    }
}

/// What was found on the disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedFile {
    /// What that comes to: `file`, `listing`, `add-slash`, `folder`, `missing`, `forbidden`,
    /// `hidden` or `failed`.
    pub outcome: String,
    /// What answers, or what was looked for.
    pub path: String,
    /// How it came to be this one, or what stands in the way.
    pub why: String,
    /// Size of the file that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// It answers because nothing else was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<bool>,
    /// Compressed copies beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precompressed: Option<Vec<CompressedCopy>>,
    /// Codings it would be compressed in when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressed_on_demand: Option<Vec<String>>,
}

/// A compressed copy of a file.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CompressedCopy {
    /// Its coding.
    pub coding: String,
    /// Its path.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// A program that would run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedProgram {
    /// Its file, or the command.
    pub file: String,
    /// Its arguments, its name first.
    pub arguments: Vec<String>,
    /// Where it works; empty where another process keeps it.
    pub dir: String,
    /// What names it in the path; null of a command.
    pub script_name: Option<String>,
    /// What follows that.
    pub path_info: Option<String>,
}

/// A rule about clients that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedRule {
    /// Its key, as `require`, `access.deny` or `ban`.
    pub rule: String,
    /// Where it stands in the config; null where an operator has said it.
    pub place: Option<String>,
    /// It lets the request on.
    pub lets_in: bool,
    /// What has to be so for that and is not known here.
    pub provided: Option<String>,
    /// Why.
    pub why: String,
}

/// What a request comes to, and by which line of the config.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedVerdict {
    /// `answered`, `sign-in` (asked to sign in), `refused`, `down` (refused for a while), `moved`
    /// (sent elsewhere), `no-site`, `no-route`, `invalid` (no request that could be answered) or
    /// `error`.
    pub outcome: String,
    /// The same in words.
    pub text: String,
    /// The rule about clients that decides; null where there is none.
    pub rule: Option<String>,
    /// Where it stands in the config, else where the route does.
    pub place: Option<String>,
    /// What has to be so for it and is not known here: that the password is right.
    pub provided: Vec<String>,
}

/// The answer itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedAnswer {
    /// Its status; null where a program says it.
    pub status: Option<u16>,
    /// Its header fields, in their order.
    pub fields: Vec<HeaderField>,
    /// Size of its body, where that is known.
    pub body_bytes: Option<u64>,
    /// Why it is an error, in the words of the request's record.
    pub reason: Option<String>,
    /// The site's own page is the body.
    pub own_error_page: bool,
}

/// A header field.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HeaderField {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Where the line of the access log goes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedLog {
    /// Who says so: `route`, `site` or `listener`.
    pub by: String,
    /// The log and its target; null where there is none, and where each listener has its own.
    pub target: Option<String>,
}

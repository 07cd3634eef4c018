//! What a result is in JSON. Its schema and the page about it in the docs are made of these types
//! and of what is said of each field.

use hob_load::history::{self, Then};
use hob_load::layout;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::besides::FlowResult;
use super::claims::ClaimResult;
use super::era::EraRatio;
use crate::interval::Estimate;
use crate::link::FrameCount;
use crate::machine::Machine;
use crate::round::Round;
use crate::server::Missing;

/// Grows when a field changes its meaning or goes; fields may be added without it.
pub(super) const FORMAT: u32 = 2;

/// The JSON schema of a result.
pub fn schema() -> Value {
    layout::schema::<CompareResult>("result of `hob compare --json`")
}

/// The reference page, in Markdown.
pub fn reference() -> String {
    format!(
        "# The result of a comparison\n\n\
         `hob compare --json FILE` writes one JSON object with these fields; `hob compare \
         --schema` prints its JSON schema. Every field is always there; those marked *or null* \
         hold null where there is nothing to tell. New fields may be added; `format` grows when \
         one changes its meaning.\n\n{}\n## Figures of old documents\n\nAs printed. \
         `W` is of the wider literature and in none of the documents; what is odd about a figure \
         is its remark.\n\n{}",
        layout::table::<CompareResult>(),
        history::reference()
    )
}

/// Result of `hob compare --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct CompareResult {
    /// Version of this layout: 2.
    pub(super) format: u32,
    /// When it began, in seconds since 1970.
    pub(super) begun_at: u64,
    /// How long all of it took.
    pub(super) elapsed_s: f64,
    /// A signal ended it: rows at the end are missing or have few rounds.
    pub(super) interrupted: bool,
    /// `quick`, `usual` or `full`.
    pub(super) scope: &'static str,
    /// `usual`: servers as they come; `tuned`: for speed.
    pub(super) settings: &'static str,
    /// What joined client and servers; null for the loopback.
    pub(super) link: Option<LinkResult>,
    /// The machine of the servers, of `--target`; null where they were on the client's.
    pub(super) target: Option<TargetResult>,
    /// Who was compared, hob first.
    pub(super) servers: Vec<ServerResult>,
    /// Who was not compared.
    pub(super) missing: Vec<Missing>,
    /// What must be known before the figures.
    pub(super) notes: Vec<String>,
    /// Why all of it is doubtful: those of the notes that say so.
    pub(super) doubts: Vec<String>,
    /// Each rival in times of hob, over all rows of files, or of programs where it serves no files.
    pub(super) standings: Vec<StandingResult>,
    /// The same work for several, in the order in which they are shown.
    pub(super) rows: Vec<RowResult>,
    /// CPU time over TLS in times of that in clear text.
    pub(super) secure_to_plain: Vec<SecureToPlain>,
    /// Ratios of old documents, each beside the same one here.
    pub(super) eras: Vec<EraRatio>,
    /// What the documents claim, each claim once, and what is so here; empty but for `--full`.
    pub(super) claims: Vec<ClaimResult>,
    /// The machine.
    pub(super) environment: Machine,
}

/// The link between client and servers.
#[derive(Serialize, JsonSchema)]
pub(super) struct LinkResult {
    /// Bits a second each way.
    pub(super) bits_per_second: Option<u64>,
    /// How much longer a round trip takes, microseconds.
    pub(super) round_trip_us: f64,
    /// Its frames in all rounds that count; null where there are none.
    pub(super) frames: Option<FrameCount>,
}

/// The machine of the servers.
#[derive(Serialize, JsonSchema)]
pub(super) struct TargetResult {
    /// Where it was heard.
    pub(super) address: String,
    /// How long a round trip took, microseconds.
    pub(super) round_trip_us: f64,
    /// Bits a second that the slower network card of both machines says that it carries; null where
    /// neither says.
    pub(super) card_bits_per_second: Option<u64>,
    /// Why it was no longer heard in the end; null where it was.
    pub(super) lost: Option<String>,
}

/// Who was compared.
#[derive(Serialize, JsonSchema)]
pub(super) struct ServerResult {
    /// The server.
    pub(super) name: String,
    /// As it says itself.
    pub(super) version: String,
    /// Its file.
    pub(super) program: String,
    /// What it was told; null where it was not started.
    pub(super) configuration: Option<String>,
}

/// A rival in times of hob.
#[derive(Serialize, JsonSchema)]
pub(super) struct StandingResult {
    /// The rival.
    pub(super) server: String,
    /// `files` or `programs`.
    pub(super) work: &'static str,
    /// Its CPU time in times of hob's, a geometric mean of rows.
    pub(super) ratio: f64,
    /// Lower end of the 95 % interval; null where a row has one round.
    pub(super) low: Option<f64>,
    /// Its upper end.
    pub(super) high: Option<f64>,
    /// Rows in it.
    pub(super) rows: usize,
    /// Rows that are doubtful, and not in it.
    pub(super) left_out: usize,
}

/// The same work for several.
#[derive(Serialize, JsonSchema)]
pub(super) struct RowResult {
    /// Its name for `--only`.
    pub(super) id: String,
    /// What it is.
    pub(super) title: String,
    /// What it belongs to.
    pub(super) group: &'static str,
    /// Connections.
    pub(super) connections: usize,
    /// False: one connection per request.
    pub(super) keep_alive: bool,
    /// `h1`, `h2` or `h3`.
    pub(super) protocol: &'static str,
    /// Requests at once on a connection.
    pub(super) streams: usize,
    /// False: clear text.
    pub(super) tls: bool,
    /// What CPU time is divided by: `request` or `megabyte`, of 1,000,000 bytes.
    pub(super) per: &'static str,
    /// Rounds made again because the host took CPU time.
    pub(super) repeated_rounds: usize,
    /// Rounds that count although it did.
    pub(super) disturbed_rounds: usize,
    /// Figures of old documents.
    pub(super) then: Vec<Then>,
    /// What old documents advised about it; empty where nothing.
    pub(super) advice: String,
    /// How the default stands to the best, in a row of a sweep.
    pub(super) sweep: Option<SweepResult>,
    /// Who did the work; the first is what the others are compared with.
    pub(super) cells: Vec<CellResult>,
}

/// How the default stands to the best.
#[derive(Serialize, JsonSchema)]
pub(super) struct SweepResult {
    /// Label of the default.
    pub(super) default: String,
    /// Label of the best.
    pub(super) best: String,
    /// CPU time of the default in times of the best.
    pub(super) ratio: Estimate,
    /// Whether it is within 5 %; null where the rounds differ too much to tell.
    pub(super) within_5_percent: Option<bool>,
}

/// Who did the work of a row, and what came of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct CellResult {
    /// The server, and how where it does it in several ways.
    pub(super) label: String,
    /// The server, as in `servers`.
    pub(super) server: String,
    /// What was asked for.
    pub(super) path: String,
    /// CPU time of the server with all its processes, microseconds.
    pub(super) cpu_us: Option<Estimate>,
    /// CPU time in times of the first one's, round by round.
    pub(super) ratio: Option<Estimate>,
    /// Share of the bandwidth of the link, or of the network cards between two machines, that
    /// bodies took; null over the loopback and where no card says what it carries.
    pub(super) link_percent: Option<f64>,
    /// Bytes of the body of an answer as they came over the wire, a median of rounds.
    pub(super) body_bytes: Option<f64>,
    /// Who got how much, in a row of many clients; else null.
    pub(super) flow: Option<FlowResult>,
    /// Frames of the link in all rounds; null without one.
    pub(super) link_frames: Option<FrameCount>,
    /// Requests without the answer that was expected.
    pub(super) failed: u64,
    /// Why there are no rounds.
    pub(super) not_measured: Option<String>,
    /// Why its figures are not to be trusted.
    pub(super) doubtful: Option<String>,
    /// Every round that counts.
    pub(super) rounds: Vec<Round>,
}

/// CPU time over TLS in times of that in clear text, of one row.
#[derive(Serialize, JsonSchema)]
pub(super) struct SecureToPlain {
    /// The row over TLS.
    pub(super) row: String,
    /// For each who was asked both ways.
    pub(super) ratios: Vec<LabelRatio>,
}

/// That of one who was asked both ways.
#[derive(Serialize, JsonSchema)]
pub(super) struct LabelRatio {
    /// As in the cells of the row.
    pub(super) label: String,
    /// The ratio.
    pub(super) ratio: f64,
}

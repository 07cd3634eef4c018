//! The config: complete once built, nothing is looked up by string afterwards.
//!
//! `schema` says every key that is nobody's handler once, `key` what an entry is made of; a
//! server's handlers bring theirs (`handlers`). `load` reads the texts (`sources`, `parse`), walks
//! them by the schema into one tree (`walk`, `values`, `tree`), builds the types of `config` from
//! it (`build`, `build_site`) and holds the rules across keys against them (`check`,
//! `unreachable`). What is wrong is a `fault` with its place. `reference` and `json_schema` are
//! made from the schema too. `route` are the paths of requests and what routes say of them. This
//! crate knows no handler.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod access;
mod acme;
mod address;
mod admin;
mod auth;
mod ban;
mod bandwidth;
mod build;
pub mod build_after;
pub mod build_site;
pub mod captured;
mod certificate_holder;
pub mod check;
mod clients;
mod concurrency;
mod config;
mod cors;
mod country;
mod expand;
pub mod fault;
mod find_file;
pub mod foreign;
mod handlers;
mod headers;
mod hidden;
mod inside;
mod json_schema;
pub mod key;
mod listeners_of_sites;
mod load;
mod log_format;
mod method;
mod metrics;
mod names;
mod nearest;
mod offer;
mod overload;
mod parse;
pub mod program;
mod rate;
mod redirects;
mod reference;
pub mod route;
pub mod schema;
mod shared;
mod sources;
mod syslog;
pub mod text;
mod tls;
pub mod tree;
mod trust;
pub mod units;
mod unreachable;
mod values;
mod walk;
mod when;

pub use access::AccessRules;
pub use acme::AcmeSpots;
pub use acme::{Acme, AcmeChallengeType, DnsHook, NAMES_MAX, is_certifiable};
pub use admin::{Admin, AdminRole, AdminUser};
pub use auth::{AccountFiles, AccountSource, AuthSettings, ForwardRoute, SignInRule};
pub use auth::{PAM_COMMAND, PAM_PROGRAM, PAM_SERVICES, PamRules};
pub use auth::{TOKEN_ALGORITHMS, TokenKeysAt, TokenKeysUrl, TokenRules};
pub use ban::{BanCause, BanSettings};
pub use bandwidth::BandwidthSettings;
pub use certificate_holder::CertificateHolder;
pub use check::{Built, Disk, PathStatus, RealDisk, Spots, TrustedDisk};
pub use clients::{AddressRange, ClientSet};
pub use concurrency::ConcurrencySettings;
pub use config::{
    AfterSteps, CacheSettings, Coding, Config, HalfClose, LimitSettings, ListenAddress, Listener,
    LogChoice, LogSettings, LogTarget, Loopback, Purpose, RouteConfig, SiteConfig, SlashForm,
    SourceLocation, UnknownHost, WatchSettings, WwwForm,
};
pub use cors::{CorsSettings, OriginRule};
pub use country::{Country, CountrySet};
pub use fault::{COMMAND_LINE, Diagnostic, Errors, Faults, Spot, Warnings, printable};
pub use handlers::{Handlers, NoHandlers};
pub use headers::{HeaderRule, HeaderRules};
pub use hidden::{is_secret, without_secrets};
pub use inside::{Activity, HistorySettings, KeptFile};
pub use load::{TEXT_BYTES_MAX, load_built, load_with, read_file, tree_of};
pub use metrics::{Metrics, MetricsDestination, Otlp, Parent};
pub use names::{ClientNamesSettings, name_server};
pub use nearest::nearest;
pub use offer::ProgramOffer;
pub use overload::{OverloadSettings, RoutePriority};
pub use program::{
    AccountRule, Cgroup, CommandLine, HostSource, IoClass, Language, Namespace, PATH,
    ProgramConfig, ProgramSpots, Rlimits, Sandbox, candidates,
};
pub use rate::{RateKey, RateSettings};
pub use redirects::{REDIRECT_STATUSES, RedirectList};
pub use schema::Schema;
pub use sources::{ConfigSources, Environment};
pub use tls::{CertificateSource, ClientNeed, ListenTls, SUITES, SiteTls, TlsSpots, UpstreamTls};
pub use tree::Argument;
pub use trust::ClientTrust;
pub use units::{duration_text, parse_duration, size_text};
pub use when::{ClientShare, RouteWhen, ValuePattern, WantedValue};

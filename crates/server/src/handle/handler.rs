//! A handler, and its settings: enums of all of them, made of the one list (`hob_trace::handlers`).
//! What one has to say for itself stands in its folder, in files of the same names everywhere:
//! `config.rs`, `answer.rs`, `explain.rs`.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hob_http::{Answered, Response};
use hob_keeper::preflight::{Accounts, MachineWants, PreflightReport, ProgramCheck};
use hob_trace::HandlerKind;

use crate::explain::{Explanation, OnExplained};
use crate::handle::config::build_after::Answering;
use crate::handle::config::build_site::OnSection;
use crate::handle::config::check::PathLookups;
use crate::handle::config::key::{SchemaKey, SchemaTable};
use crate::handle::config::program::Programs;
use crate::handle::config::tree::Section;
use crate::handle::config::{
    self, Built, Config, Faults, Handlers, Route, SCHEMA, Schema, Site, SiteSpots, Spot,
    UpstreamTls,
};
use crate::route::pattern::Pattern;
use crate::serve::context::OnRoute;
use crate::serve::sites::SitesBuildContext;

/// How a handler answers: in its `answer.rs`.
pub(crate) trait AnswersRoute {
    /// True when it speaks through tunnels, such as those of WebSockets, too.
    const OPENS_TUNNELS: bool = false;

    /// Answers a request on one of its routes, now or later.
    fn answer(self: &Arc<Self>, on: &OnRoute<'_>) -> Answered;
}

/// What a handler says that it would answer: in its `explain.rs`.
pub(crate) trait ExplainsRoute: HasSettings {
    /// The answer, as far as it is known without running anything, and why in `told`.
    fn explain(self: &Arc<Self>, on: &OnExplained<'_>, told: &mut Explanation) -> Response;
}

/// What a handler is made of.
pub trait HasSettings {
    /// What the config says of one.
    type Settings: Clone + Debug + PartialEq;
    /// Where the parts of that stand which are looked at later.
    type Spots;
}

/// How a handler stands in the config, and becomes one: in its `config.rs`.
pub(crate) trait Configured: HasSettings + Sized {
    /// Its key in a route.
    const KEY: SchemaKey;

    /// Reads its section, and says where parts of it stand that are looked at later.
    fn read(
        section: &Section,
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (Self::Settings, Self::Spots);

    /// Makes it ready to answer. May wait for a disk. An error says why that cannot be.
    fn build(
        settings: &Self::Settings,
        around: &mut SitesBuildContext<'_>,
        route: &Route,
        pattern: &Pattern,
    ) -> Result<Arc<Self>, String>;

    /// Tells what is wrong with it beside other keys, or is not there on the disk.
    fn check(
        _: &Self::Settings,
        _: &Self::Spots,
        _: &Config,
        _: &mut PathLookups<'_>,
        _: &mut Faults<'_>,
    ) {
    }

    /// Tells what this machine has in its way.
    fn look(_: &Self::Settings, _: &Self::Spots, _: &mut ProgramCheck<'_, '_, '_>) {}

    /// Which of the config's programs it runs.
    fn program(_: &Self::Settings) -> Option<usize> {
        None
    }

    /// Routes whose programs it calls: indexes of the site, and of the route there.
    fn calls(_: &Self::Settings) -> Vec<(usize, usize)> {
        Vec::new()
    }

    /// TLS that it speaks with servers of other people.
    fn upstream_tls(_: &Self::Settings) -> Option<&UpstreamTls> {
        None
    }

    /// How long what it runs may take to end.
    fn grace(_: &Self::Settings) -> Duration {
        Duration::ZERO
    }

    /// What it runs, for people; empty where it runs nothing.
    fn runs(_: &Self::Settings) -> String {
        String::new()
    }
}

macro_rules! handlers {
    ($(
        $(#[$doc:meta])*
        $module:ident $variant:ident = $number:literal $(, program $life:ident)?;
    )+) => {
        /// Who answers a route.
        pub enum Handler {
            $($(#[$doc])* $variant(Arc<super::$module::$variant>),)+
        }

        /// What the config says of who answers a route.
        #[derive(Clone, Debug, PartialEq)]
        pub enum HandlerSettings {
            $($(#[$doc])* $variant(Box<<super::$module::$variant as HasSettings>::Settings>),)+
        }

        /// Where the parts of a route's handler stand, as far as they are looked at later.
        pub enum HandlerSpots {
            $($(#[$doc])* $variant(Box<<super::$module::$variant as HasSettings>::Spots>),)+
        }

        /// Keys of a route, one of which it has.
        pub(crate) const HANDLER_KEYS: &[SchemaKey] =
            &[$(<super::$module::$variant as Configured>::KEY),+];

        /// The names of these keys.
        pub(crate) const HANDLERS: &[&str] = &[$(stringify!($module)),+];

        impl Handler {
            /// Its kind, for records.
            pub fn kind(&self) -> HandlerKind {
                match self {
                    $(Handler::$variant(_) => HandlerKind::$variant,)+
                }
            }

            /// True when requests that open a tunnel are its own to answer.
            pub(crate) fn opens_tunnels(&self) -> bool {
                match self {
                    $(Handler::$variant(_) => super::$module::$variant::OPENS_TUNNELS,)+
                }
            }

            /// Makes what its settings say for a route with this pattern.
            pub(crate) fn build(
                settings: &HandlerSettings,
                around: &mut SitesBuildContext<'_>,
                (route, pattern): (&Route, &Pattern),
            ) -> Result<Handler, String> {
                match settings {
                    $(HandlerSettings::$variant(settings) => {
                        super::$module::$variant::build(settings, around, route, pattern)
                            .map(Handler::$variant)
                    })+
                }
            }

            /// Answers a request on its route.
            #[inline]
            pub(crate) fn answer(&self, on: &OnRoute<'_>) -> Answered {
                match self {
                    $(Handler::$variant(handler) => handler.answer(on),)+
                }
            }

            /// What it would answer, and why.
            pub(crate) fn explain(&self, on: &OnExplained<'_>, told: &mut Explanation) -> Response {
                match self {
                    $(Handler::$variant(handler) => handler.explain(on, told),)+
                }
            }
        }

        impl HandlerSettings {
            /// Reads the section of a route's handler; without any, that of a fixed answer.
            fn read_one(
                on: &OnSection<'_>,
                programs: &mut Programs<'_>,
                faults: &mut Faults<'_>,
            ) -> (HandlerSettings, HandlerSpots) {
                $(if let Some(section) = on.route.section(stringify!($module)) {
                    let (read, spots) =
                        super::$module::$variant::read(section, on, programs, faults);
                    let read = HandlerSettings::$variant(Box::new(read));
                    return (read, HandlerSpots::$variant(Box::new(spots)));
                })+
                let none = Section::new(&super::respond::config::RESPOND, on.route.header);
                let (read, spots) = super::respond::Respond::read(&none, on, programs, faults);
                let read = HandlerSettings::Respond(Box::new(read));
                (read, HandlerSpots::Respond(Box::new(spots)))
            }

            fn check_own(
                &self,
                spots: &HandlerSpots,
                config: &Config,
                looked: &mut PathLookups<'_>,
                faults: &mut Faults<'_>,
            ) {
                match (self, spots) {
                    $((HandlerSettings::$variant(of), HandlerSpots::$variant(spots)) => {
                        super::$module::$variant::check(of, spots, config, looked, faults);
                    })+
                    _ => {}
                }
            }

            fn look_own(&self, spots: &HandlerSpots, look: &mut ProgramCheck<'_, '_, '_>) {
                match (self, spots) {
                    $((HandlerSettings::$variant(of), HandlerSpots::$variant(spots)) => {
                        super::$module::$variant::look(of, spots, look);
                    })+
                    _ => {}
                }
            }

            /// Which of the config's programs it runs.
            fn program_own(&self) -> Option<usize> {
                match self {
                    $(HandlerSettings::$variant(of) => super::$module::$variant::program(of),)+
                }
            }

            fn calls_own(&self) -> Vec<(usize, usize)> {
                match self {
                    $(HandlerSettings::$variant(of) => super::$module::$variant::calls(of),)+
                }
            }

            fn upstream_tls_own(&self) -> Option<&UpstreamTls> {
                match self {
                    $(HandlerSettings::$variant(of) => {
                        super::$module::$variant::upstream_tls(of)
                    })+
                }
            }

            fn grace_own(&self) -> Duration {
                match self {
                    $(HandlerSettings::$variant(of) => super::$module::$variant::grace(of),)+
                }
            }

            /// What it runs, for people; empty where it runs nothing.
            pub(crate) fn runs(&self) -> String {
                match self {
                    $(HandlerSettings::$variant(of) => super::$module::$variant::runs(of),)+
                }
            }
        }
    };
}

hob_trace::handlers!(handlers);

impl Handlers for HandlerSettings {
    type Spots = HandlerSpots;
    type Folder = config::Files;

    fn schema() -> &'static Schema {
        &SCHEMA
    }

    fn read(
        on: &OnSection<'_>,
        programs: &mut Programs<'_>,
        faults: &mut Faults<'_>,
    ) -> (HandlerSettings, HandlerSpots) {
        HandlerSettings::read_one(on, programs, faults)
    }

    fn check_top_keys(root: &Section, faults: &mut Faults<'_>) {
        super::upstream::config::check_named(root, faults);
        super::page::config::check_named(root, faults);
    }

    fn check_site_keys(site: &Section, faults: &mut Faults<'_>) {
        super::files::config::check_site_keys(site, faults);
    }

    fn of_root(site: &Section, faults: &mut Faults<'_>) -> (HandlerSettings, HandlerSpots) {
        let (files, spots) = super::files::config::of_root(site, faults);
        let spots = HandlerSpots::Files(Box::new(spots));
        (HandlerSettings::Files(Box::new(files)), spots)
    }

    fn sent_from(
        root: PathBuf,
        spot: Spot,
        answering: Answering<'_>,
        faults: &mut Faults<'_>,
    ) -> config::Files {
        super::files::config::sent_from(root, spot, answering, faults)
    }

    fn check(
        config: &Config,
        (site, spots): (&Site, &SiteSpots),
        looked: &mut PathLookups<'_>,
        faults: &mut Faults<'_>,
    ) {
        super::files::check::site(site, spots, looked, faults);
        for (route, spots) in site.routes.iter().zip(&spots.routes) {
            let handler = &route.handler;
            handler.check_own(&spots.handler, config, looked, faults);
            for (files, spot) in route.sendfile.iter().zip(&spots.sendfile) {
                looked.root(&files.root, *spot, faults);
            }
        }
    }

    fn root(&self) -> Option<&Path> {
        self.files().map(|files| files.root.as_path())
    }

    fn leaves_to_next(&self) -> bool {
        self.files().is_some_and(|files| files.try_next)
    }

    fn program(&self) -> Option<usize> {
        self.program_own()
    }

    fn calls(&self) -> Vec<(usize, usize)> {
        self.calls_own()
    }

    fn upstream_tls(&self) -> Option<&UpstreamTls> {
        self.upstream_tls_own()
    }

    fn grace(&self) -> Duration {
        self.grace_own()
    }
}

impl MachineWants for HandlerSettings {
    fn look(&self, spots: &HandlerSpots, look: &mut ProgramCheck<'_, '_, '_>) {
        self.look_own(spots, look);
    }

    fn look_at_auth(built: &Built, accounts: &Accounts, told: &mut PreflightReport<'_, '_>) {
        crate::step::auth::tokens::look(built, told);
        crate::step::auth::pam::look(built, accounts, told);
    }

    fn try_out(built: &Built, accounts: &Accounts, told: &mut PreflightReport<'_, '_>) {
        super::resident::trial::look(built, accounts, told);
    }
}

impl HandlerSettings {
    /// The table of the handler that a site's `root` is short for.
    pub(crate) fn table_of_root() -> &'static SchemaTable {
        &super::files::keys::ROUTE_FILES
    }

    /// Of files, where it is that.
    pub(crate) fn files(&self) -> Option<&config::Files> {
        match self {
            HandlerSettings::Files(files) => Some(files),
            _ => None,
        }
    }

    /// Of programs that are started or forked for each request, where it is that.
    pub fn cgi(&self) -> Option<&config::Cgi> {
        match self {
            HandlerSettings::Cgi(cgi) => Some(cgi),
            HandlerSettings::Warm(warm) => Some(&warm.0),
            _ => None,
        }
    }

    /// Of a program that stays, where it is that.
    pub fn resident(&self) -> Option<&config::Resident> {
        match self {
            HandlerSettings::Resident(resident) => Some(resident),
            _ => None,
        }
    }
}

/// Requests that are planned together, as they cost alike: a program's by its handler, files, and
/// short answers.
pub fn cost_class(kind: HandlerKind) -> &'static str {
    match kind {
        HandlerKind::Files => "static",
        program if program.runs_program() => program.word(),
        _ => "short",
    }
}

impl Handler {
    /// True when programs make its answers: they are asked for what they want done with them, and
    /// narrowed to what the request asks for.
    pub fn runs_programs(&self) -> bool {
        self.kind().runs_program()
    }

    /// True when programs of this machine do: files that they have sent are of this machine. Those
    /// of another machine's program are sent there, and it has no say over files here.
    pub(crate) fn sends_files(&self) -> bool {
        self.runs_programs() && !matches!(self, Handler::Remote(_))
    }

    /// True when paths of its requests may have handles of visits.
    pub(crate) fn has_handles(&self) -> bool {
        match self {
            Handler::Session(_) => true,
            Handler::Pages(pages) => pages.keeps_visits(),
            _ => false,
        }
    }

    /// Its files, where it has some.
    pub(crate) fn files(&self) -> Option<&Arc<super::files::Files>> {
        match self {
            Handler::Files(files) => Some(files),
            _ => None,
        }
    }

    /// What starts or forks a process for each request, where it does.
    pub fn runs(&self) -> Option<&Arc<super::cgi::Cgi>> {
        match self {
            Handler::Cgi(cgi) => Some(cgi),
            Handler::Warm(warm) => Some(&warm.0),
            _ => None,
        }
    }

    /// The program that stays, where it has one.
    pub fn resident(&self) -> Option<&Arc<super::resident::Resident>> {
        match self {
            Handler::Resident(resident) => Some(resident),
            _ => None,
        }
    }
}

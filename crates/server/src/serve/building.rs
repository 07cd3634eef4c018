//! What sites and routes are made with: handlers take from it what several of them have together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_config::{AccountSource, AuthSettings, ListenAddress};
use hob_keeper::process::ProgramRef;

use crate::handle::Handler;
use crate::handle::cgi::{Cgi, build};
use crate::handle::config::{self, CacheMode, CgiRuns, HeaderRules, ProgramConfig};
use crate::handle::files::Files;
use crate::handle::files::media_type::MediaTypes;
use crate::handle::files::open::Root;
use crate::handle::page::config::PagesSettings;
use crate::handle::page::visits::home::PageVisitHome;
use crate::handle::resident::{self, Resident};
use crate::handle::script::gate::Gate;
use crate::handle::session::config::SessionSettings;
use crate::handle::session::{self, Session};
use crate::handle::upstream::check::CheckProtocol;
use crate::handle::upstream::config::UpstreamSettings;
use crate::handle::upstream::members::Upstream;
use crate::handle::upstream::run::config::RunSettings;
use crate::handle::upstream::run::program::RunProgram;
use crate::route::pattern::Pattern;
use crate::route::template::{CapturedPath, TemplateError};
use crate::serve::ServerState;
use crate::serve::captured::Captured;
use crate::step::auth::AuthSource;
use crate::step::country::CountrySource;

/// What sites and routes are made with.
pub(crate) struct SitesBuildContext<'a> {
    pub(super) shared: &'a ServerState,
    pub(super) log_ids: &'a [u16],
    pub(super) generation: u64,
    pub(super) programs: &'a [ProgramConfig],
    pub(super) auth: &'a [AuthSettings],
    /// Workers of all programs that stay.
    pub(super) workers_max: usize,
    /// Roots of a route that are kept open where captures are part of it.
    pub(super) roots_max: usize,
    /// Where listeners listen, in the order of the config.
    pub(super) listeners: Vec<&'a ListenAddress>,
    /// Which addresses are of which country.
    pub(super) countries: Option<Arc<CountrySource>>,
    /// The site that is being made.
    pub(super) site: String,
    /// Each folder is opened once.
    pub(super) roots: HashMap<PathBuf, Arc<Root>>,
}

impl<'a> SitesBuildContext<'a> {
    pub(crate) fn cgi(
        &mut self,
        settings: &config::Cgi,
        route: &config::Route,
        pattern: &Pattern,
    ) -> Result<Cgi, String> {
        let program = self.program(settings.program)?;
        let root = match &settings.runs {
            CgiRuns::Folder { dir, captured, .. } => {
                let fixed = captured.as_ref().map_or(dir, |captured| &captured.fixed);
                Some(self.root(fixed)?)
            }
            CgiRuns::Script { .. } | CgiRuns::Command { .. } => None,
        };
        let on = build::On {
            site: &self.site,
            route,
            pattern,
            root,
            roots_max: self.roots_max,
        };
        build::build(settings, on, program, self.shared)
    }

    pub(crate) fn resident(
        &self,
        settings: &config::Resident,
        route: &config::Route,
        pattern: &Pattern,
    ) -> Result<Arc<Resident>, String> {
        let program = self.program(settings.program)?;
        resident::build::build(settings, (route, pattern), program, self.shared).map(Arc::new)
    }

    pub(crate) fn session(
        &self,
        settings: &SessionSettings,
        route: &config::Route,
        pattern: &Pattern,
    ) -> Result<Arc<Session>, String> {
        let program = self.program(settings.program.program)?;
        let on = (&*self.site, route, pattern);
        let session = session::build::build(settings, on, program, self.shared)?;
        // Other programs are to have workers, too.
        session.table.set_most((self.workers_max / 2).max(1));
        Ok(Arc::new(session))
    }

    /// Files of accounts that a route's captures give.
    pub(super) fn accounts(
        &mut self,
        route: &config::Route,
        pattern: &Pattern,
    ) -> Result<Option<Arc<Captured<AuthSource>>>, String> {
        let rule = route.require.as_ref();
        let auth = rule.and_then(|rule| self.auth.get(rule.auth));
        let Some(AccountSource::Files(files)) = auth.map(|auth| &auth.source) else {
            return Ok(None);
        };
        let Some(captured) = &files.captured else {
            return Ok(None);
        };
        let template = captured.bind(pattern);
        let template = template.map_err(|fault| TemplateError { at: 0, fault }.to_string())?;
        let fixed = self.root(template.fixed())?;
        Ok(Some(Arc::new(Captured::new(
            template,
            fixed,
            self.roots_max,
        ))))
    }

    /// Folders of files that a route's program may have sent.
    pub(super) fn sendfile(
        &mut self,
        route: &config::Route,
        handler: &Handler,
    ) -> Result<Vec<Arc<Files>>, String> {
        let folders = route.sendfile.iter().filter(|_| handler.sends_files());
        // Rules are followed when a program's own fields are known.
        let files = folders.map(|folder| self.files(folder, &HeaderRules::default()));
        files.collect()
    }

    /// Visits of the pages of a route, where it keeps some.
    pub(crate) fn page_visits(
        &self,
        path: &str,
        settings: &PagesSettings,
    ) -> Option<Arc<PageVisitHome>> {
        PageVisitHome::of((&self.site, path), settings, self.shared)
    }

    /// The program that hob runs for the route at this path, if it runs one, and whom the route
    /// asks: that program, or the members of its settings.
    pub(crate) fn run(
        &self,
        run: Option<&RunSettings>,
        upstream: &UpstreamSettings,
        path: &str,
    ) -> Result<(Option<Arc<RunProgram>>, UpstreamSettings), String> {
        let mut upstream = upstream.clone();
        let Some(settings) = run else {
            return Ok((None, upstream));
        };
        let of = format!("{} {path}", self.site);
        let rules = self.program(settings.rules)?;
        let program = self.shared.runs.find(&of, settings, rules)?;
        upstream.members = vec![program.member()];
        Ok((Some(program), upstream))
    }

    /// A program by its index, and how it is named to the spawner.
    fn program(&self, index: usize) -> Result<(&'a ProgramConfig, ProgramRef), String> {
        let (Some(program), Ok(number)) = (self.programs.get(index), u16::try_from(index)) else {
            return Err(format!(
                "there are too many programs: {}",
                self.programs.len()
            ));
        };
        let reference = ProgramRef {
            generation: self.generation,
            index: number,
        };
        Ok((program, reference))
    }

    pub(crate) fn files(
        &mut self,
        settings: &config::Files,
        headers: &HeaderRules,
    ) -> Result<Arc<Files>, String> {
        let root = self.root(&settings.root)?;
        let fallback = settings.fallback.is_some().then(|| config::Files {
            fallback: None,
            try_endings: Vec::new(),
            cache_control: settings.fallback_cache_control.clone(),
            cache: match settings.cache {
                CacheMode::Pin => CacheMode::Auto,
                other => other,
            },
            ..settings.clone()
        });
        let fallback = fallback.map(|settings| self.files(&settings, headers));
        let types = settings.types.iter().map(|(a, b)| (a.as_str(), b.as_str()));
        Ok(Arc::new(Files {
            id: self.shared.handler_id(format!("{settings:?} {headers:?}")),
            types: MediaTypes::new(types, &settings.charset),
            kinds: Arc::default(),
            settings: settings.clone(),
            pool: self.shared.pool.for_lane(root.lane()),
            root,
            headers: headers.clone(),
            fallback: fallback.transpose()?,
            captured: None,
        }))
    }

    /// Files of a route whose captures are part of their root.
    pub(crate) fn captured_files(
        &mut self,
        settings: &config::Files,
        captured: &CapturedPath,
        (route, pattern): (&config::Route, &Pattern),
    ) -> Result<Arc<Files>, String> {
        let template = captured.bind(pattern);
        let template = template.map_err(|fault| TemplateError { at: 0, fault }.to_string())?;
        let name = format!("{} {settings:?} {:?}", route.path, route.headers);
        let roots = self.shared.captured_files(name, self.roots_max, || {
            let fixed = self.root(template.fixed())?;
            Ok(Captured::new(template, fixed, self.roots_max))
        })?;
        // They answer nothing themselves, and say what all of them have in common.
        let common = config::Files {
            root: captured.fixed.clone(),
            ..settings.clone()
        };
        let files = self.files(&common, &route.headers)?;
        let files = Arc::into_inner(files).ok_or("files are in use before they are made")?;
        Ok(Arc::new(Files {
            captured: Some(roots),
            ..files
        }))
    }

    /// The name of the site that is being made.
    pub(super) fn site(&self) -> &str {
        &self.site
    }

    /// What all threads share.
    pub(crate) fn shared(&self) -> &'a ServerState {
        self.shared
    }

    /// The upstream that a route's handler asks, and the gate to it. One without a name of its own
    /// is called after its site and route, of which each is another.
    pub(crate) fn upstream(
        &self,
        settings: &UpstreamSettings,
        path: &str,
        protocol: CheckProtocol,
    ) -> (Arc<Upstream>, Arc<Gate>) {
        let (site, handler) = (self.site.trim_start_matches('*'), protocol.handler);
        let own = || format!("{site}{path} {handler}");
        let name = settings.name.clone().unwrap_or_else(own);
        let limits = (settings.connections, settings.queue);
        let gate = self
            .shared
            .gate(&format!("{name} {handler}"), name.clone(), limits);
        (self.shared.upstream(name, settings, protocol), gate)
    }

    /// The folder at a path.
    pub(crate) fn root(&mut self, path: &Path) -> Result<Arc<Root>, String> {
        if let Some(root) = self.roots.get(path) {
            return Ok(Arc::clone(root));
        }
        let opened = Root::open(path, &self.shared.changes).map_err(|error| {
            let user = rustix::process::geteuid().as_raw();
            format!(
                "root {} cannot be entered: {error}; the server runs as user {user}: let that user \
                 in, or name another with `user`",
                path.display()
            )
        })?;
        let opened = Arc::new(opened);
        self.roots.insert(path.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }
}

//! Sites and routes as they run: everything decided at load time, found in one look-up.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::{self, Config, LogChoice};
use crate::handle::Handler;
use crate::handle::files::Files;
use crate::handle::files::media_type::MediaTypes;
use crate::handle::files::open::Root;
use crate::handle::redirect::Redirect;
use crate::handle::respond::Respond;
use crate::route::host::{Chosen, HostTable};
use crate::route::pattern::Pattern;
use crate::route::table::RouteTable;
use crate::route::template::{Location, Rewrite};
use crate::shared::Shared;

/// All sites.
#[derive(Default)]
pub struct Sites {
    hosts: HostTable,
    sites: Vec<Site>,
    /// Access log of each listener, by its number; 0 is none.
    pub listener_logs: HashMap<u16, u16, foldhash::fast::RandomState>,
}

/// One site.
pub struct Site {
    table: RouteTable,
    /// Its routes, in order.
    pub routes: Vec<Route>,
    /// Bodies for error statuses.
    pub error_pages: Vec<ErrorPage>,
    /// Access log of what no route answers; `None` is the listener's.
    pub log: Option<u16>,
}

/// One route.
pub struct Route {
    /// Its pattern.
    pub pattern: Pattern,
    /// Who answers.
    pub handler: Handler,
    /// The rewritten path, if there is one.
    pub rewrite: Option<Rewrite>,
    /// Largest request body, in bytes.
    pub body_bytes_max: u64,
    /// Access log; `None` is the listener's.
    pub log: Option<u16>,
}

/// A page for an error status.
pub struct ErrorPage {
    /// Status code.
    pub status: u16,
    /// Media type.
    pub content_type: String,
    /// The page.
    pub body: Bytes,
}

/// Largest error page, in bytes.
const ERROR_PAGE_BYTES_MAX: u64 = 256 * 1024;

impl Sites {
    /// Makes sites of a config. `log_ids` are the numbers of its access logs. May wait for a disk.
    pub fn build(config: &Config, log_ids: &[u16], shared: &Shared) -> Result<Sites, String> {
        let names = |site: &config::Site| site.names.clone();
        let all_names: Vec<Vec<String>> = config.sites.iter().map(names).collect();
        let hosts = HostTable::build(
            all_names
                .iter()
                .map(|names| names.iter().map(String::as_str)),
        );
        let mut roots = HashMap::new();
        let sites = config
            .sites
            .iter()
            .map(|site| Site::build(site, log_ids, shared, &mut roots))
            .collect::<Result<_, _>>()?;
        Ok(Sites {
            hosts,
            sites,
            listener_logs: HashMap::default(),
        })
    }

    /// Index of the site for a host.
    pub fn site_of(&self, host: &[u8]) -> u32 {
        self.hosts.find(host)
    }

    /// As [`Sites::site_of`], and what decided it.
    pub fn choose_site(&self, host: &[u8]) -> Chosen {
        self.hosts.choose(host)
    }

    /// A site by its index.
    pub fn site(&self, index: u32) -> Option<&Site> {
        self.sites.get(index as usize)
    }

    /// Every files handler.
    pub fn files_handlers(&self) -> impl Iterator<Item = &Arc<Files>> {
        self.sites
            .iter()
            .flat_map(|site| &site.routes)
            .filter_map(|route| match &route.handler {
                Handler::Files(files) => Some(files),
                _ => None,
            })
    }
}

impl Site {
    fn build(
        site: &config::Site,
        log_ids: &[u16],
        shared: &Shared,
        roots: &mut HashMap<std::path::PathBuf, Arc<Root>>,
    ) -> Result<Site, String> {
        let log_of = |choice, inherited| match choice {
            LogChoice::Off => Some(0),
            LogChoice::Log(index) => Some(log_ids.get(index).copied().unwrap_or(0)),
            LogChoice::Inherit => inherited,
        };
        let site_log = log_of(site.log, None);
        let mut routes = Vec::with_capacity(site.routes.len());
        for route in &site.routes {
            let at = |text: String| {
                format!(
                    "{}:{}: route \"{}\": {text}",
                    route.place.file, route.place.line, route.path
                )
            };
            let pattern = Pattern::parse(&route.path).map_err(|error| at(error.to_string()))?;
            let rewrite = match &route.rewrite {
                Some(text) => {
                    Some(Rewrite::parse(text, &pattern).map_err(|error| at(error.to_string()))?)
                }
                None => None,
            };
            let handler = handler(route, &pattern, shared, roots).map_err(at)?;
            routes.push(Route {
                pattern,
                handler,
                rewrite,
                body_bytes_max: route.body,
                log: log_of(route.log, site_log),
            });
        }
        let table = RouteTable::build(routes.iter().map(|route| &route.pattern));
        let types = MediaTypes::new([], "utf-8");
        let error_pages = site
            .error_pages
            .iter()
            .map(|(status, path)| error_page(*status, path, &types))
            .collect::<Result<_, _>>()?;
        Ok(Site {
            table,
            routes,
            error_pages,
            log: site_log,
        })
    }

    /// Index of the route for a normal path, and where the path leaves its fixed folder.
    pub fn find(&self, path: &[u8]) -> Option<(u32, usize)> {
        self.table
            .find(path)
            .map(|found| (found.route, found.below))
    }

    /// The site's own page for a status.
    pub fn error_page(&self, status: u16) -> Option<&ErrorPage> {
        self.error_pages.iter().find(|page| page.status == status)
    }
}

fn handler(
    route: &config::Route,
    pattern: &Pattern,
    shared: &Shared,
    roots: &mut HashMap<std::path::PathBuf, Arc<Root>>,
) -> Result<Handler, String> {
    match &route.handler {
        config::Handler::Files(settings) => {
            let root = match roots.get(&settings.root) {
                Some(root) => Arc::clone(root),
                None => {
                    let opened = Root::open(&settings.root).map_err(|error| {
                        let path = settings.root.display();
                        let user = rustix::process::geteuid().as_raw();
                        format!(
                            "root {path} cannot be entered: {error}; the server runs as user {user}: \
                             let that user in, or name another with `user`"
                        )
                    })?;
                    let opened = Arc::new(opened);
                    roots.insert(settings.root.clone(), Arc::clone(&opened));
                    opened
                }
            };
            let types = settings.types.iter().map(|(a, b)| (a.as_str(), b.as_str()));
            Ok(Handler::Files(Arc::new(Files {
                id: shared.handler_id(format!("{settings:?} {:?}", route.headers)),
                types: MediaTypes::new(types, &settings.charset),
                settings: settings.clone(),
                pool: shared.pool.for_lane(root.lane()),
                root,
                headers: route.headers.clone(),
            })))
        }
        config::Handler::Redirect(redirect) => Ok(Handler::Redirect(Redirect {
            to: Location::parse(&redirect.to, pattern).map_err(|error| error.to_string())?,
            status: redirect.status,
            headers: route.headers.clone(),
        })),
        config::Handler::Respond(respond) => Ok(Handler::Respond(Respond {
            status: respond.status,
            content_type: respond.content_type.clone(),
            body: Bytes::from(respond.body.clone()),
            headers: route.headers.clone(),
        })),
        config::Handler::Admin => {
            Err("the control API is served on the control socket only".into())
        }
    }
}

fn error_page(status: u16, path: &Path, types: &MediaTypes) -> Result<ErrorPage, String> {
    use std::os::unix::ffi::OsStrExt;
    let fail = |text: String| format!("error page {}: {text}", path.display());
    let size = std::fs::metadata(path)
        .map_err(|error| fail(error.to_string()))?
        .len();
    if size > ERROR_PAGE_BYTES_MAX {
        return Err(fail(format!(
            "it has {size} bytes; at most {ERROR_PAGE_BYTES_MAX} are allowed"
        )));
    }
    let body = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
    let media = types.of(path.file_name().unwrap_or_default().as_bytes());
    let content_type = match media.charset {
        Some(charset) => format!("{}; charset={charset}", media.name),
        None => media.name.to_owned(),
    };
    Ok(ErrorPage {
        status,
        content_type,
        body: body.into(),
    })
}

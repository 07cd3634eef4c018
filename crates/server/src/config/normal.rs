//! The config as text in one normal form: every value in a fixed order, defaults included.
//!
//! It is for reading and comparing (golden tests, `hob check`), not for loading.

use std::fmt::{self, Display, Write as _};

use hob_trace::watch::Hidden;

use super::inside::fmt_inside;
use super::units::{duration_text, size_text};
use super::{
    AfterSteps, CacheMode, ClientNames, Coding, Config, Files, HalfClose, Handler, HeaderRule,
    HeaderRules, ListenAddress, Listener, LogChoice, LogSettings, LogTarget, Loopback, Route, Site,
    Symlinks, WatchSettings,
};

impl Config {
    /// Everything the config says, in a fixed order, as text.
    pub fn normal(&self) -> String {
        self.to_string()
    }
}

impl Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.threads {
            Some(threads) => writeln!(f, "threads = {threads}")?,
            None => writeln!(f, "threads = \"auto\"")?,
        }
        writeln!(f, "cpus = {:?}", self.cpus)?;
        writeln!(f, "nice = {}", self.nice)?;
        writeln!(f, "user = {}", or_none(self.user.as_ref().map(quoted)))?;
        writeln!(f, "group = {}", or_none(self.group.as_ref().map(quoted)))?;
        match (&self.control, self.control_off) {
            (Some(path), _) => writeln!(f, "control = {}", quoted(path.display()))?,
            (None, true) => writeln!(f, "control = \"off\"")?,
            (None, false) => writeln!(f, "control = none")?,
        }
        let state = self.state.as_ref().map(|path| quoted(path.display()));
        writeln!(f, "state = {}", or_none(state))?;
        writeln!(f, "drain = {}", duration_text(self.drain))?;
        if self.activity.is_off {
            writeln!(f, "activity = \"off\"")?;
        }
        self.fmt_limits(f)?;
        writeln!(f, "\n[cache]\nbytes = {}", size_text(self.cache.bytes))?;
        writeln!(f, "max_file = {}", size_text(self.cache.max_file))?;
        writeln!(f, "max_file_tls = {}", size_text(self.cache.max_file_tls))?;
        writeln!(f, "recheck = {}", duration_text(self.cache.recheck))?;
        self.watch.fmt_keys(f)?;
        self.metrics.fmt_keys(f)?;
        if let Some(otlp) = &self.otlp {
            otlp.fmt_keys(f)?;
        }
        if let Some(names) = &self.names {
            names.fmt_keys(f)?;
        }
        fmt_inside(&self.history, &self.activity, f)?;
        if let Some(acme) = &self.acme {
            acme.fmt_keys(f)?;
        }
        if let Some(admin) = &self.admin {
            admin.fmt_keys(&self.listeners, f)?;
        }
        for (index, log) in self.logs.iter().enumerate() {
            writeln!(f, "\n[[log]] # {index}")?;
            log.fmt_keys(f)?;
        }
        // `localhost` is one listener to whoever writes it.
        let is_said = |listener: &&Listener| listener.localhost != Some(Loopback::V6);
        let mut listeners = self.site_listeners().filter(is_said);
        listeners.try_for_each(|listener| listener.fmt_keys(f))?;
        self.sites.iter().try_for_each(|site| site.fmt_keys(f))?;
        for (index, program) in self.programs.iter().enumerate() {
            writeln!(f, "\n[[program]] # {index}")?;
            program.fmt_keys(f)?;
        }
        Ok(())
    }
}

impl ClientNames {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.map(quoted);
        writeln!(f, "\n[names]\nserver = {}", or_none(server))?;
        writeln!(f, "entries = {}\nqueue = {}", self.entries, self.queue)?;
        writeln!(f, "time = {}", duration_text(self.time))?;
        writeln!(f, "keep = {}", duration_text(self.keep))?;
        writeln!(f, "keep_unknown = {}", duration_text(self.keep_unknown))
    }
}

impl Config {
    fn fmt_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = &self.limits;
        writeln!(
            f,
            "\n[limits]\ntarget = {}",
            size_text(limits.target as u64)
        )?;
        writeln!(f, "head = {}", size_text(limits.head as u64))?;
        writeln!(f, "headers = {}", limits.headers)?;
        writeln!(f, "head_time = {}", duration_text(limits.head_time))?;
        writeln!(f, "body_progress = {}", duration_text(limits.body_progress))?;
        writeln!(
            f,
            "write_progress = {}",
            duration_text(limits.write_progress)
        )?;
        writeln!(f, "idle = {}", duration_text(limits.idle))?;
        writeln!(f, "linger = {}", duration_text(limits.linger))?;
        let handshake_time = duration_text(limits.handshake_time);
        writeln!(f, "handshake_time = {handshake_time}")?;
        let handshake_bytes = size_text(limits.handshake_bytes as u64);
        writeln!(f, "handshake_bytes = {handshake_bytes}")?;
        writeln!(f, "handshakes = {}", limits.handshakes)?;
        writeln!(f, "connections = {}", limits.connections)?;
        writeln!(
            f,
            "connections_per_client = {}",
            limits.connections_per_client
        )?;
        writeln!(f, "body = {}", size_text(limits.body))?;
        writeln!(f, "workers = {}", limits.workers)
    }
}

impl LogSettings {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            LogTarget::File(path) => writeln!(f, "file = {}", quoted(path.display()))?,
            LogTarget::Stdout => writeln!(f, "stdout = true")?,
        }
        writeln!(f, "format = {}", quoted(&self.format))?;
        writeln!(f, "rotate_size = {}", size_text(self.rotate_bytes))?;
        writeln!(
            f,
            "rotate = \"{}\"",
            if self.rotate_daily { "daily" } else { "never" }
        )?;
        writeln!(f, "keep = {}", self.keep)?;
        writeln!(f, "compress = {}", self.compress)
    }
}

impl Listener {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.address, self.localhost) {
            (ListenAddress::Tcp(address), Some(_)) => {
                let address = format!("localhost:{}", address.port());
                writeln!(f, "\n[[listen]]\naddress = {}", quoted(&address))?;
            }
            (address, _) => writeln!(f, "\n[[listen]]\naddress = {}", quoted(address))?,
        }
        writeln!(f, "backlog = {}", self.backlog)?;
        let size = |bytes: Option<usize>| or_none(bytes.map(|bytes| size_text(bytes as u64)));
        writeln!(f, "send_buffer = {}", size(self.send_buffer))?;
        writeln!(f, "receive_buffer = {}", size(self.receive_buffer))?;
        writeln!(f, "notsent_lowat = {}", size(self.notsent_lowat))?;
        writeln!(
            f,
            "user_timeout = {}",
            or_none(self.user_timeout.map(duration_text))
        )?;
        writeln!(f, "defer_accept = {}", duration_text(self.defer_accept))?;
        writeln!(f, "v6only = {}", self.v6only)?;
        if let Some(tls) = &self.tls {
            tls.fmt_keys(f)?;
        }
        writeln!(f, "log = {}", self.log)
    }
}

impl Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ListenAddress::Inherited(name) => write!(f, "systemd:{name}"),
        }
    }
}

impl Site {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n[[site]] # line {}", self.place.line)?;
        writeln!(f, "names = {:?}", self.names)?;
        writeln!(f, "log = {}", self.log)?;
        if self.https_only {
            writeln!(f, "https_only = true")?;
        }
        self.tls.fmt_keys(f)?;
        for (status, path) in &self.error_pages {
            writeln!(f, "error_pages.{status} = {}", quoted(path.display()))?;
        }
        fmt_rules(&self.headers, f)?;
        self.routes.iter().try_for_each(|route| route.fmt_keys(f))
    }
}

impl Route {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n[[site.route]] # line {}", self.place.line)?;
        writeln!(f, "path = {}", quoted(&self.path))?;
        writeln!(
            f,
            "rewrite = {}",
            or_none(self.rewrite.as_ref().map(quoted))
        )?;
        writeln!(f, "body = {}", size_text(self.body))?;
        fmt_rules(&self.headers, f)?;
        if self.server_timing {
            writeln!(f, "server_timing = true")?;
        }
        if self.internal {
            writeln!(f, "internal = true")?;
        }
        if !matches!(self.handler, Handler::Files(_) | Handler::Redirect(_)) {
            self.after.fmt_keys(f)?;
            for files in &self.sendfile {
                writeln!(f, "sendfile = {}", quoted(files.root.display()))?;
            }
        }
        writeln!(f, "log = {}", self.log)?;
        let half_close = match self.half_close {
            HalfClose::Cancel => "cancel",
            HalfClose::Serve => "serve",
        };
        writeln!(f, "half_close = \"{half_close}\"")?;
        match &self.handler {
            Handler::Files(files) => files.fmt_keys(f),
            Handler::Cgi(cgi) => cgi.fmt_keys(f),
            Handler::Resident(resident) => resident.fmt_keys(f),
            Handler::Redirect(redirect) => {
                writeln!(f, "redirect.to = {}", quoted(&redirect.to))?;
                writeln!(f, "redirect.status = {}", redirect.status)
            }
            Handler::Respond(respond) => {
                writeln!(f, "respond.status = {}", respond.status)?;
                writeln!(
                    f,
                    "respond.content_type = {}",
                    quoted(&respond.content_type)
                )?;
                writeln!(f, "respond.body = {}", quoted(&respond.body))
            }
            Handler::Metrics(metrics) => metrics.fmt_keys(f),
            Handler::Admin => writeln!(f, "admin"),
        }
    }
}

impl WatchSettings {
    /// Only what the config says otherwise than by default.
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hidden_query != Hidden::QUERY || !self.hidden_fields.is_empty() {
            writeln!(f, "\n[watch]\nhidden_query = {:?}", self.hidden_query)?;
            writeln!(f, "hidden_fields = {:?}", self.hidden_fields)?;
        }
        Ok(())
    }
}

impl AfterSteps {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codings: Vec<_> = self.compress.iter().map(|coding| coding.word()).collect();
        writeln!(f, "compress = {codings:?}")?;
        writeln!(f, "compress_min = {}", size_text(self.compress_min))?;
        writeln!(f, "compress_types = {:?}", self.compress_types)?;
        writeln!(f, "intercept_errors = {}", self.intercept_errors)?;
        writeln!(f, "buffer_max = {}", size_text(self.buffer_max))
    }
}

fn fmt_rules(rules: &HeaderRules, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for rule in rules.iter() {
        match rule {
            HeaderRule::Set(name, value) => writeln!(f, "headers.{name} = {}", quoted(value))?,
            HeaderRule::Add(name, value) => writeln!(f, "headers_add = \"{name}: {value}\"")?,
            HeaderRule::Remove(name) => writeln!(f, "headers_remove = {}", quoted(name))?,
        }
    }
    Ok(())
}

impl Files {
    fn fmt_keys(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "files.root = {}", quoted(self.root.display()))?;
        writeln!(f, "files.keep_prefix = {}", self.keep_prefix)?;
        writeln!(f, "files.index = {:?}", self.index)?;
        writeln!(f, "files.listing = {}", self.listing)?;
        writeln!(
            f,
            "files.fallback = {}",
            or_none(self.fallback.as_ref().map(quoted))
        )?;
        let endings: Vec<_> = self
            .precompressed
            .iter()
            .map(|coding| coding.ending())
            .collect();
        writeln!(f, "files.precompressed = {endings:?}")?;
        let codings: Vec<_> = self.compress.iter().map(|coding| coding.word()).collect();
        writeln!(f, "files.compress = {codings:?}")?;
        writeln!(f, "files.compress_min = {}", size_text(self.compress_min))?;
        writeln!(f, "files.compress_types = {:?}", self.compress_types)?;
        writeln!(f, "files.dot_files = {}", self.dot_files)?;
        writeln!(f, "files.symlinks = \"{}\"", self.symlinks.word())?;
        writeln!(f, "files.charset = {}", quoted(&self.charset))?;
        for (ending, media_type) in &self.types {
            writeln!(f, "files.types.{} = {}", quoted(ending), quoted(media_type))?;
        }
        writeln!(f, "files.cache_control = {}", quoted(&self.cache_control))?;
        writeln!(f, "files.cache = \"{}\"", self.cache.word())
    }
}

impl Symlinks {
    pub(super) fn word(self) -> &'static str {
        match self {
            Symlinks::Inside => "inside",
            Symlinks::Follow => "follow",
            Symlinks::Refuse => "refuse",
        }
    }
}

impl CacheMode {
    pub(super) fn word(self) -> &'static str {
        match self {
            CacheMode::Auto => "auto",
            CacheMode::Off => "off",
            CacheMode::Pin => "pin",
        }
    }
}

impl Coding {
    /// The ending of precompressed files, without its dot.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zst",
            Coding::Gzip => "gz",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }
}

impl Display for LogChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogChoice::Inherit => f.write_str("inherit"),
            LogChoice::Off => f.write_str("off"),
            LogChoice::Log(index) => write!(f, "{index}"),
        }
    }
}

pub(super) fn quoted(value: impl Display) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{:?}", value.to_string());
    text
}

pub(super) fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "none".to_owned())
}

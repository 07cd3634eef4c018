//! Access logs of a server process: opened with each config, ended when no request can name them
//! any more.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hob_http::network::acknowledged_bytes;
use hob_trace::access_log::{AccessLog, DestinationSettings, LogId, Target};
use hob_trace::format::{AccessLogFormat, RecordNames};

use super::process::ServingProcess;
use hob_keeper::piped;
use hob_server::config::{Config, LogSettings, LogTarget};
use hob_server::serve::countries::CountriesInForce;
use hob_server::serve::log_values::LogValues;

impl ServingProcess {
    /// Opens the logs of a config, by its index. Those that are files come from the keeper.
    pub(super) fn open_logs(
        &mut self,
        config: &Config,
        files: Vec<Option<OwnedFd>>,
    ) -> Result<Vec<LogId>, String> {
        if config.logs.is_empty() {
            return Ok(Vec::new());
        }
        let mut names = names(config);
        if config.names.is_some() {
            names.set_clients(Arc::clone(&self.admin.names) as _);
        }
        if config.countries.is_some() {
            names.set_countries(Arc::new(CountriesInForce(Arc::clone(&self.shared))));
        }
        let names = Arc::new(names);
        let mut ids = Vec::new();
        for (settings, file) in config.logs.iter().zip(files) {
            let format = format(settings)?;
            let asked = Arc::from(format.asked());
            let destination = DestinationSettings {
                name: name(settings),
                format,
                names: Arc::clone(&names),
                rotate_bytes: settings.rotate_bytes,
                rotate_daily: settings.rotate_daily,
            };
            let target = match (file, &settings.target) {
                (Some(file), _) => Target::File(File::from(file)),
                (None, LogTarget::Syslog(syslog)) => {
                    Target::Syslog(Box::new(syslog.clone()), acknowledged_bytes)
                }
                (None, LogTarget::Program(arguments)) => {
                    Target::Program(arguments.clone(), piped::start)
                }
                (None, _) => Target::Stdout,
            };
            let registered = self.writer()?.register(destination, target);
            let id = registered.map_err(|error| error.to_string())?;
            self.asked.push((id, asked));
            ids.push(id);
        }
        Ok(ids)
    }

    /// What the logs ask for that requests may name.
    pub(super) fn log_values(&self) -> LogValues {
        let asked = self.asked.iter();
        LogValues::new(asked.map(|(id, values)| (id.number(), Arc::clone(values))))
    }

    /// Ends logs that no request names any more.
    pub(super) fn retire(&mut self, logs: Vec<LogId>) {
        for id in logs {
            self.asked.retain(|(known, _)| *known != id);
            if let Some(log) = &self.log {
                log.retire(id);
            }
        }
    }

    /// The thread that writes logs, from the first log on.
    fn writer(&mut self) -> Result<&AccessLog, String> {
        if self.log.is_none() {
            let signals = Arc::clone(&self.signals);
            let ask = Box::new(move |log| {
                signals.to_rotate.lock().push(log);
                signals.ring();
            });
            let started = AccessLog::start(self.shared.counts.counters.new_thread(), ask);
            let log = started.map_err(|error| error.to_string())?;
            self.rings.drain(..).for_each(|ring| log.add_ring(ring));
            self.log = Some(log);
        }
        self.log.as_ref().ok_or_else(String::new)
    }
}

/// What a log is called in messages.
fn name(settings: &LogSettings) -> String {
    match &settings.target {
        LogTarget::File(path) => path.display().to_string(),
        LogTarget::Stdout => "standard output".to_owned(),
        LogTarget::Syslog(syslog) => format!("syslog {}", syslog.address),
        LogTarget::Program(arguments) => program_name(arguments),
    }
}

fn program_name(arguments: &[String]) -> String {
    let path = arguments.first().map_or("", String::as_str);
    format!("program {path}")
}

fn format(settings: &LogSettings) -> Result<AccessLogFormat, String> {
    let value = |name: &str| {
        let found = settings.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    AccessLogFormat::parse_with(&settings.format, &value).map_err(|error| error.to_string())
}

fn names(config: &Config) -> RecordNames {
    let mut names = RecordNames::new();
    for site in &config.sites {
        names.add_site(&site.name(), site.routes.iter().map(|route| route.label()));
    }
    names
}

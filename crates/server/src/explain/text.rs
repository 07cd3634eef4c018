//! The explanation for people: one line per decision, its reason beside it.

use std::fmt::{self, Display, Write as _};

use hob_http::status::phrase;

use super::answer::Setting;
use super::told::{ExplainedProgram, ExplainedRoute, Explanation, Listener, LogTarget, OnDisk};
use hob_config::units::size_text;

/// Routes that do not match and are shown; of more, the first and the last.
const ROUTES_SHOWN_MAX: usize = 16;
/// Settings are broken into lines of about so many characters.
const LINE_CHARS: usize = 88;
/// A setting that is too long to be read.
const SETTING_UNSHOWN: &str = "compress_types";

impl Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}\n", self.method, self.url)?;
        self.fmt_entrance(f)?;
        self.fmt_routes(f)?;
        if let Some(path) = &self.answered_as {
            line(
                f,
                "passed to",
                &format!("{path} (another route answers for the file that was found)"),
            )?;
        }
        if let Some(rewrite) = &self.rewrite {
            match &rewrite.path {
                Ok(path) => line(f, "rewrite", &format!("{path} (from {})", rewrite.to))?,
                Err(why) => line(f, "rewrite", &format!("refused: {why}"))?,
            }
        }
        if let Some(handler) = &self.handler {
            line(f, "handler", handler.name)?;
            for text in setting_lines(&handler.settings) {
                line(f, "", &text)?;
            }
        }
        if let Some(disk) = &self.disk {
            fmt_disk(f, disk)?;
        }
        if let Some(program) = &self.program {
            fmt_program(f, program)?;
        }
        self.fmt_rules(f)?;
        self.fmt_answer(f)?;
        if let Some(bytes) = self.body_bytes_max {
            line(
                f,
                "body",
                &format!("a request may bring up to {}", size_text(bytes)),
            )?;
        }
        self.fmt_log(f)?;
        for note in &self.notes {
            line(f, "note", note)?;
        }
        Ok(())
    }
}

impl Explanation {
    fn fmt_entrance(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = "listener";
        for listener in self.entrances() {
            line(f, name, &listener.address)?;
            name = "";
        }
        if let Some(why) = &self.refused {
            return line(f, "head", &format!("refused: {why}"));
        }
        if let Some(site) = &self.site {
            let names = match site.names.is_empty() {
                true => "without names".to_owned(),
                false => site.names.join(" "),
            };
            line(
                f,
                "site",
                &format!("{names} ({}): {}", site.place, site.why),
            )?;
        }
        match &self.path {
            None => Ok(()),
            Some(path) => match &path.normal {
                Ok(normal) if *normal == path.raw => line(f, "path", normal),
                Ok(normal) => line(f, "path", &format!("{normal} (from {})", path.raw)),
                Err(why) => line(f, "path", &format!("{} is refused: {why}", path.raw)),
            },
        }
    }

    fn fmt_routes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.routes.len();
        let half = ROUTES_SHOWN_MAX / 2;
        let mut name = "routes";
        for (at, route) in self.routes.iter().enumerate() {
            let left_out = count.saturating_sub(ROUTES_SHOWN_MAX);
            if left_out > 0 && at == half {
                line(
                    f,
                    name,
                    &format!("... {left_out} more that do not match ..."),
                )?;
            }
            if left_out == 0 || at < half || at >= half + left_out {
                line(f, name, &route_text(route))?;
            }
            name = "";
        }
        match self.routes.last() {
            Some(route) if route.mismatch.is_none() => Ok(()),
            Some(_) => line(f, "", "none of the site's routes matches"),
            None if self.path.as_ref().is_some_and(|path| path.normal.is_ok()) => {
                line(f, "routes", "the site has none")
            }
            None => Ok(()),
        }
    }

    /// Who may, where somebody may not.
    fn fmt_rules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = "rules";
        for rule in &self.rules {
            let place = rule.place.as_ref().map(|place| format!(" ({place})"));
            let place = place.unwrap_or_default();
            let what = if rule.lets_in { "lets in" } else { "refuses" };
            let text = format!("{}{place} {what}: {}", rule.rule, rule.why);
            line(f, name, &text)?;
            name = "";
        }
        if self.rules.is_empty() {
            return Ok(());
        }
        let verdict = self.verdict();
        line(f, "verdict", &verdict.text)?;
        for provided in &verdict.provided {
            line(f, "", &format!("provided that {provided}"))?;
        }
        Ok(())
    }

    fn fmt_answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = &self.answer;
        line(f, "answer", &self.answer_text())?;
        for name in [
            "Location",
            "Allow",
            "WWW-Authenticate",
            "Cache-Control",
            "Content-Encoding",
            "Content-Range",
            "Vary",
        ] {
            if let Some(value) = answer.field(name) {
                line(f, "", &format!("{name}: {value}"))?;
            }
        }
        match (&answer.reason, &self.path) {
            (Some(reason), Some(path)) if path.normal.as_ref().err() != Some(reason) => {
                line(f, "", reason)
            }
            _ => Ok(()),
        }
    }

    fn answer_text(&self) -> String {
        let answer = &self.answer;
        if self.program.is_some() {
            return "what the program says".to_owned();
        }
        let mut text = format!("{} {}", answer.status, phrase(answer.status));
        if answer.is_own_error_page {
            text.push_str(", the site's own page");
        }
        if let Some(media_type) = answer.field("Content-Type") {
            text.push_str(&format!(", {media_type}"));
        }
        // The size of a page made here says nothing.
        let is_made = match &self.disk {
            Some(disk) => disk.file.is_none(),
            None => answer.status >= 300,
        };
        if let Some(bytes) = answer
            .body_bytes
            .filter(|_| !is_made || answer.is_own_error_page)
        {
            text.push_str(&format!(", {bytes} bytes"));
        }
        text
    }

    /// The listeners the URL leads to, else all.
    fn entrances(&self) -> impl Iterator<Item = &Listener> {
        let has_direct = self.listeners.iter().any(|one| one.is_direct);
        let all = self.listeners.iter();
        all.filter(move |one| one.is_direct || !has_direct)
    }

    fn fmt_log(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(log) = &self.log else { return Ok(()) };
        match &log.target {
            LogTarget::Off => line(f, "log", &format!("none, says the {}", log.by)),
            LogTarget::To(name) => line(f, "log", &format!("{name}, says the {}", log.by)),
            LogTarget::ByListener => {
                let mut logs: Vec<_> = self.entrances().map(|one| &one.log).collect();
                logs.dedup();
                match &logs[..] {
                    [None] | [] => line(f, "log", "none"),
                    [Some(log)] => line(f, "log", &format!("{log}, says the listener")),
                    _ => {
                        let mut name = "log";
                        for one in self.entrances() {
                            let log = one.log.as_deref().unwrap_or("none");
                            line(
                                f,
                                name,
                                &format!("{log}, says the listener {}", one.address),
                            )?;
                            name = "";
                        }
                        Ok(())
                    }
                }
            }
        }
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    // Whatever a name on the disk or in the URL holds, it stays one line.
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            write!(plain, "{}", c.escape_default())?;
        } else {
            plain.push(c);
        }
    }
    writeln!(f, "{name:<10}{plain}")
}

fn route_text(route: &ExplainedRoute) -> String {
    if let Some(why) = route.mismatch.as_ref().filter(|_| route.is_skipped) {
        let ExplainedRoute { path, place, .. } = route;
        return format!("{path} is skipped, says its `when`: {why} ({place})");
    }
    if let Some(why) = &route.mismatch {
        return format!("{} does not match: {why}", route.path);
    }
    let captures = route.captures.iter();
    let captures: Vec<_> = captures
        .map(|(name, text)| format!("{name} = {text:?}"))
        .collect();
    let with = match captures.is_empty() {
        true => String::new(),
        false => format!(" with {}", captures.join(", ")),
    };
    format!("{} matches{with} ({})", route.path, route.place)
}

fn fmt_disk(f: &mut fmt::Formatter<'_>, disk: &OnDisk) -> fmt::Result {
    let Some(file) = &disk.file else {
        line(
            f,
            "file",
            &format!("{}: {}", disk.path.display(), disk.outcome.word()),
        )?;
        return line(f, "", &disk.why);
    };
    let facts = format!(
        "{}, {} bytes, {}",
        disk.path.display(),
        file.bytes,
        file.media_type
    );
    line(f, "file", &facts)?;
    line(f, "", &disk.why)?;
    for (coding, path, bytes) in &file.siblings {
        let text = format!(
            "{}, {bytes} bytes, for clients that take {coding}",
            path.display()
        );
        line(f, "", &text)?;
    }
    match &file.compressed_on_demand[..] {
        [] => Ok(()),
        codings => line(
            f,
            "",
            &format!("compressed when asked for in {}", codings.join(", ")),
        ),
    }
}

fn fmt_program(f: &mut fmt::Formatter<'_>, program: &ExplainedProgram) -> fmt::Result {
    line(f, "program", &program.file)?;
    if program.arguments.len() > 1 || program.arguments.first() != Some(&program.file) {
        line(f, "", &format!("run as {:?}", program.arguments))?;
    }
    // Nobody says where a program works that another process keeps.
    if !program.dir.is_empty() {
        line(f, "", &format!("in {}", program.dir))?;
    }
    match &program.parts {
        Some((name, info)) => line(
            f,
            "",
            &format!("SCRIPT_NAME = {name:?}, PATH_INFO = {info:?}"),
        ),
        None => Ok(()),
    }
}

/// `key = value` after the other, broken into lines.
fn setting_lines(settings: &[(String, Setting)]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (key, setting) in settings {
        let value = match setting {
            Setting::Flag(flag) => flag.to_string(),
            Setting::Number(number) => number.to_string(),
            Setting::Text(text) if text.is_empty() => continue,
            Setting::Text(text) => format!("{text:?}"),
            Setting::Texts(texts) if texts.is_empty() => continue,
            Setting::Texts(texts) => format!("{texts:?}"),
        };
        if key == SETTING_UNSHOWN {
            continue;
        }
        let text = format!("{key} = {value}");
        match lines.last_mut() {
            Some(last) if last.chars().count() + text.chars().count() < LINE_CHARS => {
                last.push_str(", ");
                last.push_str(&text);
            }
            _ => lines.push(text),
        }
    }
    lines
}

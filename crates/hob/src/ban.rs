//! `hob ban`: clients that the running hob does not hear, and who is to be one.

use std::time::{SystemTime, UNIX_EPOCH};

use hob_inside::api::Banned;

use crate::args::{BanCommand, Surroundings};
use crate::control::{hob, tell};
use crate::filter::push_encoded;
use crate::history::moment;
use crate::table::{TextCell, TextTable, numbers, texts, words};
use crate::{CommandFailure, output};

/// Shows who is banned, bans somebody or ends bans.
pub(crate) fn run(command: &BanCommand, surroundings: &Surroundings) -> Result<(), CommandFailure> {
    let (target, options) = match command {
        BanCommand::List(options) => {
            let answer = hob(options, surroundings)?.ask("GET", "/v1/bans")?;
            if !options.json {
                let told = answer.told()?;
                let banned = serde_json::from_value(told).map_err(|error| CommandFailure {
                    code: 3,
                    text: format!("the answer is not understood: {error}"),
                })?;
                output::write(&shown(&banned));
                return Ok(());
            }
            return tell(answer, options);
        }
        BanCommand::Add(options) => {
            let mut target = format!("/v1/bans/add?time_s={}&", options.time.as_secs());
            target.push_str(if options.close { "close=true&" } else { "" });
            target.push_str("client=");
            push_encoded(&mut target, &options.client);
            (target, &options.control)
        }
        BanCommand::Lift(options) => {
            let target = match &options.client {
                None => "/v1/bans/lift?all=true".to_owned(),
                Some(client) => {
                    let mut target = "/v1/bans/lift?client=".to_owned();
                    push_encoded(&mut target, client);
                    target
                }
            };
            (target, &options.control)
        }
    };
    let answer = hob(options, surroundings)?.ask("POST", &target)?;
    tell(answer, options)
}

fn shown(banned: &Banned) -> String {
    if banned.bans.is_empty() {
        return "nobody is banned\n".to_owned();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.unwrap_or_default().as_millis() as u64;
    let mut table = TextTable::new(&[
        words("client"),
        words("by"),
        texts("refused last"),
        numbers("since"),
        numbers("left"),
        numbers("refused"),
        words("until"),
    ]);
    for one in &banned.bans {
        let until = moment(one.until_unix_ms);
        table.push(vec![
            TextCell::text(Some(&one.client)),
            TextCell::text(Some(one.rule.as_deref().unwrap_or("hand"))),
            TextCell::text(one.why.as_deref()),
            TextCell::age(Some(now_ms.saturating_sub(one.since_unix_ms) / 1000)),
            TextCell::age(Some(one.until_unix_ms.saturating_sub(now_ms) / 1000)),
            TextCell::count(Some(one.refused)),
            TextCell::text(Some(&until)),
        ]);
    }
    let mut text = table.text(output::width());
    let more = banned.total.saturating_sub(banned.bans.len());
    if more > 0 {
        text.push_str(&format!("{more} more\n"));
    }
    text
}

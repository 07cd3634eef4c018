//! `trusted` of a listener: whose word on its clients is believed, and in which field.

use super::clients::ClientSet;
use super::config::Listener;
use super::fault::Faults;
use super::tree::Section;

/// Who is believed on who its clients are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTrust {
    /// From where they connect.
    pub peers: ClientSet,
    /// The field in which they say it, in lower case; `None` where the header of the PROXY protocol
    /// says it, and no field.
    pub field: Option<String>,
}

impl ClientTrust {
    /// Reads it; `None` where nobody is believed.
    pub(crate) fn read(section: &Section, faults: &mut Faults<'_>) -> Option<ClientTrust> {
        let field = section.text("client_from").to_ascii_lowercase();
        let is_meant = section.given("client_from").is_some() || !section.flag("proxy_protocol");
        let peers = ClientSet::read(section, "trusted", false, faults);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if field.is_empty() || !field.bytes().all(is_name) {
            faults
                .error(
                    section.spot("client_from"),
                    format!("{field:?} is no field"),
                )
                .hint("write the name of a field, such as `X-Forwarded-For`");
        }
        let is_any = !peers.is_empty();
        if let (Some(given), false) = (section.given("client_from"), is_any) {
            faults
                .warn(given.key, "`client_from` does nothing here")
                .hint("nobody is believed: add `trusted`, or remove it");
        }
        is_any.then(|| ClientTrust {
            peers,
            field: is_meant.then_some(field),
        })
    }
}

/// What does not go together with the header of the PROXY protocol that a listener asks for.
pub(crate) fn look_at_header(section: &Section, listener: &mut Listener, faults: &mut Faults<'_>) {
    let given = section.given("proxy_protocol");
    if let (Some(tls), Some(keys)) = (&mut listener.tls, section.section("tls")) {
        tls.http3 = false;
        if let Some(http3) = keys.given("http3").filter(|_| keys.flag("http3")) {
            faults
                .warn(
                    http3.key,
                    "HTTP/3 is not spoken here: no header comes over UDP",
                )
                .see(section.spot("proxy_protocol"), "`proxy_protocol`")
                .hint("remove it, and listen for HTTP/3 where clients connect by themselves");
        }
    }
    let is_open = !listener.address.is_for_this_machine_only();
    if let (Some(given), true, None) = (given, is_open, &listener.trust) {
        faults
            .warn(
                given.key,
                "whoever reaches this listener can say who they are",
            )
            .hint("list what stands in front in `trusted`, such as `trusted = [\"10.0.0.0/8\"]`");
    }
}

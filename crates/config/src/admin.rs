//! `[admin]`: where the admin pages are, and who may use them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use argon2::Params;
use argon2::password_hash::phc::PasswordHash;

use super::address::{check_host, listen_address, localhost_port};
use super::build::{add_listener, listener};
use super::check::ListenSpots;
use super::fault::Faults;
use super::schema::LISTEN;
use super::tls::{build_admin_tls, spots};
use super::tree::Section;
use super::{ListenAddress, Listener, LogChoice, Purpose};

/// The admin pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Host names that they are asked for by, besides their own addresses; lower case.
    pub names: Vec<String>,
    /// Who can log in with a password.
    pub users: Vec<AdminUser>,
    /// Sessions at a time.
    pub sessions_max: usize,
    /// How long a login holds.
    pub session_time: Duration,
    /// How long a printed URL can be used.
    pub token_time: Duration,
    /// Failed logins of one client address in a minute.
    pub login_tries_max: usize,
    /// The config's files may be changed from the pages.
    pub may_edit: bool,
    /// File to which each action is appended.
    pub audit: Option<PathBuf>,
}

/// Someone who can log in with a password.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminUser {
    /// Name.
    pub name: String,
    /// Argon2 hash of the password, in its usual form.
    pub hash: String,
    /// What they may do.
    pub role: AdminRole,
}

/// What somebody may do; more comes later in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdminRole {
    /// See everything.
    Look,
    /// Do everything.
    Operate,
}

impl AdminRole {
    /// Its word in configs and answers.
    pub fn word(self) -> &'static str {
        match self {
            AdminRole::Look => "look",
            AdminRole::Operate => "operate",
        }
    }
}

/// Most memory that checking a password may take, in KiB.
const MEMORY_KIB_MAX: u32 = 1024 * 1024;
/// Most passes over it.
const PASSES_MAX: u32 = 100;

/// The admin pages of a config, if it has any; their listeners are added to the others.
pub(crate) fn build_admin(
    root: &Section,
    listening: &mut (Vec<Listener>, Vec<ListenSpots>),
    faults: &mut Faults<'_>,
) -> Option<Admin> {
    let section = root.section("admin")?;
    add_admin_listener(section, listening, faults);
    let mut names = Vec::new();
    for (name, spot) in section.texts("names") {
        match check_host(name) {
            Ok(()) if !name.starts_with('*') => names.push(name.to_owned()),
            Ok(()) => {
                let hint = "write each name by itself";
                faults
                    .error(spot, format!("{name:?} is no single name"))
                    .hint(hint);
            }
            Err((message, hint)) => {
                faults.error(spot, message).hint(hint);
            }
        }
    }
    let mut users: Vec<AdminUser> = Vec::new();
    for user in section.sections("user") {
        if let Some(user) = build_user(user, &users, faults) {
            users.push(user);
        }
    }
    Some(Admin {
        names,
        users,
        sessions_max: section.number("sessions"),
        session_time: section.time("session_time"),
        token_time: section.time("token_time"),
        login_tries_max: section.number("login_tries"),
        may_edit: section.flag("edit"),
        audit: section.optional_path("audit").cloned(),
    })
}

fn add_admin_listener(
    section: &Section,
    listening: &mut (Vec<Listener>, Vec<ListenSpots>),
    faults: &mut Faults<'_>,
) {
    let text = section.text("address");
    let spot = section
        .given("address")
        .map_or(section.header, |given| given.spot);
    let localhost = localhost_port(text);
    let read = match localhost {
        Some(port) => Ok(ListenAddress::Tcp(([127, 0, 0, 1], port).into())),
        None => listen_address(text, |path| PathBuf::from(path)),
    };
    let address = match read {
        Ok(ListenAddress::Unix(_)) => {
            faults
                .error(spot, "a browser cannot reach a Unix socket")
                .hint(
                    "write a port, such as \"127.0.0.1:9080\"; `control` is a socket for programs",
                );
            return;
        }
        Ok(address) => address,
        Err((message, hint)) => {
            faults.error(spot, message).hint(hint);
            return;
        }
    };
    let tls = section.section("tls");
    if tls.is_none() && !address.is_for_this_machine_only() {
        faults
            .warn(spot, "passwords and sessions pass in clear text here")
            .hint("add `tls = true` to `[admin]`, or listen on 127.0.0.1");
    }
    let defaults = Section::new(&LISTEN, section.header);
    let mut listener = listener(
        &defaults,
        address,
        LogChoice::Off,
        &Default::default(),
        faults,
    );
    listener.purpose = Purpose::Admin;
    listener.tls = tls.map(|tls| build_admin_tls(tls, faults));
    let own_spots = ListenSpots {
        address: spot,
        tls: tls.map(spots),
        offers: spot,
        tcp_only: Vec::new(),
    };
    add_listener(listener, own_spots, localhost, listening);
}

fn build_user(
    section: &Section,
    before: &[AdminUser],
    faults: &mut Faults<'_>,
) -> Option<AdminUser> {
    let (_, _) = (section.given("name")?, section.given("password")?);
    let (name, hash) = (section.text("name"), section.text("password"));
    if name.is_empty() || name.len() > 255 || name.contains(char::is_control) {
        faults
            .error(
                section.spot("name"),
                format!("{name:?} is no name of a user"),
            )
            .hint("it has 1 to 255 bytes and no control characters");
        return None;
    }
    if before.iter().any(|user| user.name == name) {
        faults
            .error(
                section.spot("name"),
                format!("a second user is named {name:?}"),
            )
            .hint("remove one of them");
        return None;
    }
    if let Err(message) = check_hash(hash) {
        faults
            .error(section.spot("password"), message)
            .hint("`hob password` asks for a password and prints what to write here");
        return None;
    }
    Some(AdminUser {
        name: name.to_owned(),
        hash: hash.to_owned(),
        role: match section.word("role") {
            "operate" => AdminRole::Operate,
            _ => AdminRole::Look,
        },
    })
}

/// A hash that checking a password against is possible and does not take everything.
fn check_hash(text: &str) -> Result<(), String> {
    let no_hash = || "this is no Argon2 hash of a password".to_owned();
    let hash = PasswordHash::new(text).map_err(|_| no_hash())?;
    if !hash.algorithm.as_str().starts_with("argon2") || hash.hash.is_none() {
        return Err(no_hash());
    }
    let params = Params::try_from(&hash).map_err(|_| no_hash())?;
    if params.m_cost() > MEMORY_KIB_MAX || params.t_cost() > PASSES_MAX {
        return Err(format!(
            "checking it would take more than {MEMORY_KIB_MAX} KiB or {PASSES_MAX} passes"
        ));
    }
    Ok(())
}

impl fmt::Debug for AdminUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A hash is no secret and better not shown.
        write!(f, "AdminUser({:?}, {:?})", self.name, self.role)
    }
}

impl Admin {
    /// The address of the pages for a browser: of a listener at this address, with a token for one
    /// login. The token stands behind `#`: browsers send that nowhere.
    pub fn url(&self, shown: &str, is_tls: bool, token: Option<&str>) -> String {
        let scheme = if is_tls { "https" } else { "http" };
        let port = shown.rsplit_once(':').map_or("", |(_, port)| port);
        let place = match self.names.first() {
            Some(name) => format!("{name}:{port}"),
            None => shown.to_owned(),
        };
        match token {
            Some(token) => format!("{scheme}://{place}/#token={token}"),
            None => format!("{scheme}://{place}/"),
        }
    }
}

//! Who the members of an upstream are at a moment: those of the config, and the servers of its
//! services. Another one is made whenever a service has others.

use std::sync::Arc;

use crate::handle::upstream::balance::{self, Balance};
use crate::handle::upstream::config::{MemberSettings, UpstreamSettings};
use crate::handle::upstream::member::Member;
use crate::handle::upstream::services::{Service, ServiceMember};
use crate::handle::upstream::sticky::StickyMembers;

/// What stands at one place of the config.
#[derive(Debug)]
pub(crate) enum ConfiguredMember {
    /// A member.
    Member(Arc<Member>),
    /// Several, which name servers have.
    Service(Service),
}

impl ConfiguredMember {
    pub(crate) fn member(&self) -> Option<&Arc<Member>> {
        match self {
            ConfiguredMember::Member(member) => Some(member),
            ConfiguredMember::Service(_) => None,
        }
    }

    pub(crate) fn service(&self) -> Option<&Service> {
        match self {
            ConfiguredMember::Member(_) => None,
            ConfiguredMember::Service(service) => Some(service),
        }
    }
}

/// All members.
#[derive(Debug)]
pub(crate) struct Roster {
    pub(crate) all: Vec<ListedMember>,
    /// Those that there are, the lowest first.
    pub(crate) ranks: Vec<u32>,
    /// Places in `all`, each as often as its weight says, well mixed; for those that have a turn.
    pub(crate) schedule: Vec<usize>,
    /// Who stays with which of them.
    pub(crate) sticky: Option<StickyMembers>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct ListedMember {
    pub(crate) member: Arc<Member>,
    /// The place in the config of it, or of its service.
    pub(crate) configured: usize,
    /// Its share of the requests beside those of others.
    pub(crate) weight: u32,
    /// It is asked where all of lower ranks are left out.
    pub(crate) rank: u32,
}

/// The rank of a `backup`; of a service, where it begins.
pub(crate) const BACKUP_RANK: u32 = 1 << 16;
/// Shares are told in such parts of that of a member whose weight is 1, where there is a service:
/// its servers have less than that.
const SHARE_PARTS: u32 = 100;

impl Roster {
    pub(crate) fn of(settings: &UpstreamSettings, configured: &[ConfiguredMember]) -> Roster {
        let has_services = configured.iter().any(|one| one.service().is_some());
        let parts = if has_services { SHARE_PARTS } else { 1 };
        let mut all = Vec::new();
        for (place, (one, terms)) in configured.iter().zip(&settings.members).enumerate() {
            match one {
                ConfiguredMember::Member(member) => all.push(ListedMember {
                    member: Arc::clone(member),
                    configured: place,
                    weight: terms.weight * parts,
                    rank: rank(terms, 0),
                }),
                ConfiguredMember::Service(service) => {
                    all.extend(listed(&service.servers(), (place, terms)));
                }
            }
        }
        let mut ranks: Vec<u32> = all.iter().map(|one| one.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let schedule = match settings.balance {
            Balance::RoundRobin => {
                let weights: Vec<u32> = all.iter().map(|one| one.weight).collect();
                balance::schedule(&weights)
            }
            _ => Vec::new(),
        };
        let texts = || all.iter().map(|one| &*one.member.text);
        let sticky = settings.sticky.as_ref();
        Roster {
            sticky: sticky.map(|sticky| StickyMembers::new(sticky, texts())),
            ranks,
            schedule,
            all,
        }
    }

    /// Where a member stands, if it is one still.
    pub(crate) fn place(&self, member: &Arc<Member>) -> Option<usize> {
        let mut all = self.all.iter();
        all.position(|one| Arc::ptr_eq(&one.member, member))
    }
}

fn rank(terms: &MemberSettings, within: u32) -> u32 {
    match terms.backup {
        true => BACKUP_RANK + within,
        false => within,
    }
}

/// Servers of a service, each priority behind the one before.
fn listed<'a>(
    servers: &'a [ServiceMember],
    (configured, terms): (usize, &'a MemberSettings),
) -> impl Iterator<Item = ListedMember> + 'a {
    let mut priorities: Vec<u16> = servers.iter().map(|one| one.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    servers.iter().map(move |one| {
        let within = priorities.iter().filter(|known| **known < one.priority);
        let same = servers.iter().filter(|it| it.priority == one.priority);
        let most = same.map(|it| it.weight).max().unwrap_or_default();
        ListedMember {
            member: Arc::clone(&one.member),
            configured,
            weight: share(one.weight, most) * terms.weight,
            rank: rank(terms, within.count() as u32),
        }
    })
}

/// What a weight is beside the greatest of the same priority. Who has none is asked seldom.
//= rfc2782
fn share(weight: u16, most: u16) -> u32 {
    match most {
        0 => SHARE_PARTS,
        _ => (u32::from(weight) * SHARE_PARTS / u32::from(most)).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_the_greatest_and_nobody_has_none() {
        assert_eq!([share(3, 3), share(1, 3), share(0, 3)], [100, 33, 1]);
        assert_eq!(share(0, 0), 100);
        assert_eq!([share(65535, 65535), share(1, 65535)], [100, 1]);
    }
}

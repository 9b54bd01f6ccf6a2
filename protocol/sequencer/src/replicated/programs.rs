//! Which versions of the engine the programs of a cluster know: nobody goes to one that some replica could not apply.

use std::collections::BTreeMap;

use walras_consensus::{Members, ReplicaId};
use walras_types::EngineVersion;

/// The newest version that each replica's program knows.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    me: ReplicaId,
    own: EngineVersion,
    /// Of the replicas that are linked.
    others: BTreeMap<ReplicaId, EngineVersion>,
}

/// Why the cluster does not go to a version of the engine now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionRefused {
    /// It goes forward only.
    #[error("the venue runs under engine version {in_force} and never goes back: give a later one")]
    NotLater {
        /// The version in force.
        in_force: EngineVersion,
    },
    /// A replica that could not go on.
    #[error(
        "the program of replica {replica} knows engine versions up to {newest}: upgrade it first, or give a version that every replica knows"
    )]
    Unknown {
        /// Which.
        replica: ReplicaId,
        /// What it knows.
        newest: EngineVersion,
    },
    /// A replica of which nothing is known.
    #[error(
        "replica {replica} is not linked with the leader, so nobody knows which program it runs: start it, or remove it from the cluster"
    )]
    NotLinked {
        /// Which.
        replica: ReplicaId,
    },
}

impl Programs {
    /// This replica's.
    pub(super) fn new(me: ReplicaId, own: EngineVersion) -> Self {
        Self { me, own, others: BTreeMap::new() }
    }

    /// What a replica's program knows while it is linked.
    pub(super) fn note(&mut self, peer: ReplicaId, newest: Option<EngineVersion>) {
        match newest {
            Some(newest) => drop(self.others.insert(peer, newest)),
            None => drop(self.others.remove(&peer)),
        }
    }

    /// Whether this replica's program knows a version.
    pub(super) fn knows(&self, version: EngineVersion) -> bool {
        version <= self.own
    }

    /// The newest that it knows.
    pub(super) fn own(&self) -> EngineVersion {
        self.own
    }

    /// Whether all members can go on under that version.
    pub(super) fn check(&self, version: EngineVersion, in_force: EngineVersion, members: &Members) -> Result<(), VersionRefused> {
        if version <= in_force {
            return Err(VersionRefused::NotLater { in_force });
        }
        let newest_of = |id: &ReplicaId| if *id == self.me { Some(self.own) } else { self.others.get(id).copied() };
        for id in members.voters.union(&members.learners) {
            let newest = newest_of(id).ok_or(VersionRefused::NotLinked { replica: *id })?;
            if newest < version {
                return Err(VersionRefused::Unknown { replica: *id, newest });
            }
        }
        // Whoever leads may have been removed.
        if self.knows(version) { Ok(()) } else { Err(VersionRefused::Unknown { replica: self.me, newest: self.own }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_have_to_know_a_version() {
        let id = |id| ReplicaId::new(id).unwrap();
        let version = EngineVersion;
        let mut members = Members::of_voters([id(1), id(2)]);
        members.learners.insert(id(3));
        let mut programs = Programs::new(id(1), version(12));
        let check = |programs: &Programs, to| programs.check(version(to), version(11), &members);

        assert_eq!(check(&programs, 11), Err(VersionRefused::NotLater { in_force: version(11) }));
        assert_eq!(check(&programs, 12), Err(VersionRefused::NotLinked { replica: id(2) }));
        programs.note(id(2), Some(version(12)));
        programs.note(id(3), Some(version(11)));
        assert_eq!(check(&programs, 12), Err(VersionRefused::Unknown { replica: id(3), newest: version(11) }));
        programs.note(id(3), Some(version(13)));
        // Somebody who belongs to no cluster does not count.
        programs.note(id(4), Some(version(1)));
        assert_eq!(check(&programs, 12), Ok(()));
        assert_eq!(check(&programs, 13), Err(VersionRefused::Unknown { replica: id(1), newest: version(12) }));
        programs.note(id(2), None);
        assert_eq!(check(&programs, 12), Err(VersionRefused::NotLinked { replica: id(2) }));
        assert!(programs.knows(version(12)) && !programs.knows(version(13)));
    }
}

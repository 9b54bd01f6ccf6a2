//! Admission of connections, and closing of displaced ones.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tracing::info;
use walras_gateway::{Admission, Admitted, ConnectionNumber, NoPlace, Permission, Permissions, Places, SourceId, Standing};
use walras_types::AccountId;

use super::lines::{Kind, Lines};

/// Closes a connection. Called at most once, on any thread; must not block.
type Leave = Box<dyn FnOnce() + Send>;

/// The pool of connections that a client belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The public ports.
    Public,
    /// `http.operator_listen`, whose places are its own.
    Operator,
}

/// The connections of all ports that share places. Clones are the same.
#[derive(Clone)]
pub struct Doors(Arc<Shared>);

struct Shared {
    begun: Instant,
    inside: Mutex<Inside>,
}

struct Inside {
    admission: Admission,
    leave: BTreeMap<ConnectionNumber, Leave>,
    lines: Lines,
}

impl fmt::Debug for Doors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors").field("open", &self.inside().admission.len()).finish()
    }
}

impl Doors {
    /// Creates a pool with these limits.
    #[must_use]
    pub fn new(places: Places) -> Self {
        let inside = Inside { admission: Admission::new(places), leave: BTreeMap::new(), lines: Lines::default() };
        Self(Arc::new(Shared { begun: Instant::now(), inside: Mutex::new(inside) }))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Changes the limits.
    pub fn set_places(&self, places: Places) {
        self.inside().admission.set_places(places);
    }

    /// Admits a new connection. If all places are taken, closes another one. `leave` will close the new one when it is displaced.
    pub fn enter(&self, from: IpAddr, leave: impl FnOnce() + Send + 'static) -> Guest {
        let now_ns = self.now_ns();
        let mut inside = self.inside();
        let Admitted { number, leaves } = inside.admission.admit(now_ns, SourceId::of(from));
        inside.leave.insert(number, Box::new(leave));
        let sent_away = leaves.and_then(|leaves| {
            let leave = inside.leave.remove(&leaves.number)?;
            let is_said = inside.lines.may_say(now_ns, Kind::MadeRoom);
            Some((leave, is_said.then_some(leaves.of_source)))
        });
        drop(inside);
        if let Some((leave, said)) = sent_away {
            leave();
            if let Some(count) = said {
                info!(
                    "all places are taken: an idle connection without a key was closed for a new one, of an address that had {count} of \
                     them"
                );
            }
        }
        Guest { number, doors: self.clone() }
    }

    /// Writes a log line, unless too many of its kind were written.
    pub fn say(&self, kind: Kind, line: impl FnOnce() -> String) {
        let now_ns = self.now_ns();
        let is_said = self.inside().lines.may_say(now_ns, kind);
        if is_said {
            info!("{}", line());
        }
    }

    /// Writes counts of suppressed lines. To be called about every second.
    pub fn say_summaries(&self) {
        let now_ns = self.now_ns();
        let summaries: Vec<_> = self.inside().lines.summaries(now_ns).collect();
        summaries.iter().for_each(|summary| info!("{summary}"));
    }
}

/// A connection's place. It is given back when this is dropped.
#[derive(Debug)]
pub struct Guest {
    number: ConnectionNumber,
    doors: Doors,
}

impl Guest {
    /// Records input of the client.
    pub fn touch(&self) {
        let now_ns = self.doors.now_ns();
        self.doors.inside().admission.touch(now_ns, self.number);
    }

    /// The client has shown a key of `account`, which protects its connection unless too many are.
    ///
    /// # Errors
    /// It is not protected, and why.
    pub fn has_shown(&self, permissions: Permissions, account: Option<AccountId>) -> Result<(), NoPlace> {
        let standing = if permissions.allow(Permission::Operator) { Standing::Operator } else { Standing::Participant };
        self.doors.inside().admission.promote(self.number, standing, account)
    }

    /// Writes a log line, unless too many of its kind were written.
    pub fn say(&self, kind: Kind, line: impl FnOnce() -> String) {
        self.doors.say(kind, line);
    }

    /// Whether the client has shown an operator's key.
    pub fn is_operator(&self) -> bool {
        self.doors.inside().admission.standing(self.number) == Some(Standing::Operator)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut inside = self.doors.inside();
        inside.admission.remove(self.number);
        let leave = inside.leave.remove(&self.number);
        drop(inside);
        // It may own another connection's place, whose drop locks this state again.
        drop(leave);
    }
}

//! Damage at rest: a bit of a file turns while a replica is down. What it says of that is a message that names the file, and
//! another one takes its place; or nobody needs what is damaged, as a snapshot before which there is another one, and it goes on
//! with all that it had.

use std::path::PathBuf;

use super::machine::Fortune;
use super::mutation::Mutation;
use super::places::replica_id;
use super::replica::StartError;
use super::world::World;
use crate::common::checks::Violation;

/// The segments that the log was written to last are spared: what damage makes of the very last group looks as if power had failed
/// while it was written, and nobody can tell.
const SEGMENTS_SPARED: usize = 2;

impl World {
    /// Power fails at a replica, and meanwhile a bit turns.
    pub(super) fn damage(&mut self, replica: usize) {
        self.report.crashes += u64::from(self.take_process(replica).is_some());
        let machine = &mut self.machines[replica];
        machine.disk.device.crash();
        machine.fortune = Fortune::Doomed;
        self.start_later(replica);
        let device = &self.machines[replica].disk.device;
        let of_kind = |end: &str| -> Vec<PathBuf> {
            let paths = device.paths().into_iter();
            paths.filter(|path| path.extension().is_some_and(|extension| extension == end)).collect()
        };
        let (mut files, snapshots) = (of_kind("seg"), of_kind("snap"));
        files.sort();
        files.truncate(files.len().saturating_sub(SEGMENTS_SPARED));
        files.extend(snapshots);
        if files.is_empty() {
            return;
        }
        let path = files[self.losses.below(files.len() as u64) as usize].clone();
        let bytes = device.bytes_of(&path).unwrap_or_default();
        let written: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        if written.is_empty() {
            return;
        }
        let (at, bit) = (self.losses.pick(&written), self.losses.below(8));
        device.flip(&path, at, 1 << bit);
        self.machines[replica].is_damaged = true;
        self.report.damaged += 1;
        self.report.faults += 1;
        self.trace.line(self.now_ns, || format!("replica {}: byte {at} of {} turns", replica_id(replica), path.display()));
    }

    /// A replica whose files are damaged does not start, and says why.
    pub(super) fn refused_for_damage(&mut self, replica: usize, error: &StartError) -> Result<(), Violation> {
        let text = error.to_string();
        self.trace.line(self.now_ns, || format!("replica {}: does not start: {text}", replica_id(replica)));
        let machine = &mut self.machines[replica];
        machine.disk.device.kill();
        machine.is_damaged = false;
        self.report.damage_refused += 1;
        let Some(path) = error.damaged_file().filter(|_| self.settings.mutation == Some(Mutation::CutAtDamage)) else {
            if !text.contains("/replica") {
                return Err(Violation::new("damage", format!("the message names no file: {text}")));
            }
            self.replace(replica);
            return Ok(());
        };
        // What the log had from there on goes, as if it had been torn there.
        let device = &machine.disk.device;
        let is_after = |other: &PathBuf| other.parent() == path.parent() && other.extension() == path.extension() && *other >= path;
        device.paths().iter().filter(|other| is_after(other)).for_each(|other| device.lose(other));
        self.start_later(replica);
        Ok(())
    }
}

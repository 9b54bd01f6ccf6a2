//! A simulated disk in memory that loses, tears and refuses writes, from a seed. The simulator and the tests run the log on it.
//!
//! What it models: writes that were not synced survive a crash page by page or not at all, torn at any byte, or as garbage; names
//! that were not synced likewise; a full disk; reads that return less than asked; writes and syncs that fail, after which memory
//! shows bytes that the device never got; syncs that lie or take long; a device that is gone for a while; no descriptor left. What
//! it does not: latency (the simulator adds it), damage to bytes at rest ([`SimDisk::flip`] does that), more than one folder level
//! of durability for `create_dir_all`.

use crate::disk::{Disk, DiskFile, LockKind};
use crate::pace::Pace;
use crate::sim_bytes::SimBytes;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// How the disk behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimDiskConfig {
    /// What the device writes as a unit: unsynced bytes survive or not in pages of this size.
    pub page_bytes: usize,
    /// Whether a page that was being written at the crash may hold anything afterwards, not only a mix of old and new bytes.
    pub garbage_pages: bool,
    /// Whether a read may return fewer bytes than it was asked for.
    pub short_reads: bool,
    /// Bytes of file that fit.
    pub capacity_bytes: u64,
}

impl Default for SimDiskConfig {
    fn default() -> Self {
        Self { page_bytes: 4096, garbage_pages: true, short_reads: true, capacity_bytes: u64::MAX }
    }
}

/// Which operations of a [`SimDisk`] fail, counted from now: `Some(0)` is the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimFaults {
    /// The machine stops at this operation that changes anything; that operation may or may not have had its effect.
    pub crash_in_ops: Option<u64>,
    /// This `sync_data` fails.
    pub sync_error_in: Option<u64>,
    /// This write fails, possibly after writing a part.
    pub write_error_in: Option<u64>,
    /// The device fails from this changing operation on, until other faults are set.
    pub gone_in_ops: Option<u64>,
}

/// What a `sync_data` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SimSyncs {
    /// What it promises.
    #[default]
    Done,
    /// Nothing, and it says that it is done: a disk that lies.
    Ignored,
    /// It waits until this is set otherwise: a slow disk. For tests with threads.
    Held,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// What reads see.
    memory: SimBytes,
    /// What the device holds.
    device: SimBytes,
    /// Pages written since the last sync.
    dirty: Pages,
    /// Pages that a failed sync gave up: memory shows them, the device may not have them, and no later sync writes them.
    given_up: Pages,
    /// Handles that are open: a file without a name is there as long as somebody has it open.
    open_count: usize,
}

/// Some pages of a file.
#[derive(Clone, Debug, Default)]
struct Pages {
    /// A bit for each.
    words: Vec<u64>,
    count: usize,
}

impl Pages {
    fn insert(&mut self, page: usize) {
        let (word, bit) = (page / 64, 1 << (page % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    fn remove(&mut self, page: usize) {
        let (word, bit) = (page / 64, 1 << (page % 64));
        if self.words.get(word).is_some_and(|word| word & bit != 0) {
            self.words[word] &= !bit;
            self.count -= 1;
        }
    }

    fn clear(&mut self) {
        self.words.clear();
        self.count = 0;
    }

    /// Of so many bytes each in a file of a length: where they are, neighbours together, in ascending order.
    fn ranges(&self, page_bytes: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
        let mut pages = self.iter().peekable();
        std::iter::from_fn(move || {
            let first = pages.next()?;
            let mut end = first + 1;
            while pages.next_if_eq(&end).is_some() {
                end += 1;
            }
            let to = (end * page_bytes).min(len);
            Some((first * page_bytes).min(to)..to)
        })
    }

    /// In ascending order.
    fn iter(&self) -> impl Iterator<Item = usize> {
        let of_word = |(at, word): (usize, &u64)| {
            let next = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
            let lefts = std::iter::successors(Some(*word).filter(|word| *word != 0), next);
            lefts.map(move |left| 64 * at + left.trailing_zeros() as usize)
        };
        self.words.iter().enumerate().flat_map(of_word)
    }
}

/// Names changed by one operation: a name now means a file, or nothing. Paths are compared as they are written, which is far
/// cheaper than by their parts.
type NameChange = Vec<(OsString, Option<u64>)>;

#[derive(Clone, Debug, Default)]
struct State {
    config: SimDiskConfig,
    faults: SimFaults,
    random: u64,
    names: BTreeMap<OsString, u64>,
    device_names: BTreeMap<OsString, u64>,
    unsynced_names: Vec<NameChange>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    locks: BTreeMap<PathBuf, (LockKind, u32)>,
    /// Files and locks that may be open; without a limit as many as are asked for.
    descriptors_max: Option<usize>,
    /// Handles of an earlier process or machine are dead.
    epoch: u64,
    is_off: bool,
    ops: u64,
    syncs: SimSyncs,
    /// Calls that wait.
    held_syncs: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    syncs_changed: Condvar,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Shared>);

/// A file of a [`SimDisk`].
#[derive(Debug)]
pub struct SimFile {
    disk: SimDisk,
    inode: u64,
    epoch: u64,
    read_only: bool,
}

/// A lock of a [`SimDisk`].
#[derive(Debug)]
pub struct SimLock {
    disk: SimDisk,
    dir: PathBuf,
    epoch: u64,
}

impl SimDisk {
    /// An empty disk. The seed decides every choice that it makes.
    #[must_use]
    pub fn new(seed: u64, config: SimDiskConfig) -> Self {
        assert!(config.page_bytes > 0, "a page has at least one byte");
        Self::of(State { config, random: seed, ..State::default() })
    }

    fn of(state: State) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(state), syncs_changed: Condvar::new() }))
    }

    /// Sets what syncs do from now on, those that wait included.
    pub fn set_syncs(&self, syncs: SimSyncs) {
        self.state().syncs = syncs;
        self.0.syncs_changed.notify_all();
    }

    /// Syncs that wait.
    #[must_use]
    pub fn held_sync_count(&self) -> usize {
        self.state().held_syncs
    }

    /// Sets which operations fail, replacing what was set before.
    pub fn set_faults(&self, faults: SimFaults) {
        self.state().faults = faults;
    }

    /// Sets how many bytes of file fit.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.state().config.capacity_bytes = capacity_bytes;
    }

    /// Lets so many more files be open than are now, or as many as are asked for. A call that finds no descriptor changes nothing.
    pub fn set_more_descriptors(&self, count: Option<usize>) {
        let mut state = self.state();
        state.descriptors_max = count.map(|count| state.open_count() + count);
    }

    /// Operations so far that change anything.
    #[must_use]
    pub fn op_count(&self) -> u64 {
        self.state().ops
    }

    /// Files that were ever made.
    #[must_use]
    pub fn created_count(&self) -> u64 {
        self.state().next_inode
    }

    /// Whether a planned crash has happened.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// The power fails and comes back: what was not synced survives in part. Open files and locks are gone.
    pub fn crash(&self) {
        self.state().crash();
    }

    /// The process ends, the machine goes on: memory keeps what was written. Open files and locks are gone.
    pub fn kill(&self) {
        self.state().start_over();
    }

    /// A copy that shares nothing with this disk.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut copy = self.state().clone();
        copy.locks.clear();
        copy.held_syncs = 0;
        copy.inodes.values_mut().for_each(|file| file.open_count = 0);
        Self::of(copy)
    }

    /// Names of all files.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().names.keys().map(PathBuf::from).collect()
    }

    /// The bytes of a file.
    #[must_use]
    pub fn bytes_of(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        state.names.get(path.as_os_str()).map(|inode| state.inodes[inode].memory.to_vec())
    }

    /// Damages a byte at rest.
    pub fn flip(&self, path: &Path, offset: usize, mask: u8) {
        self.edit(path, |bytes| bytes[offset] ^= mask);
    }

    /// Changes a file behind the program's back, in memory and on the device. Panics when there is no such file.
    pub fn edit(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let inode = *state.names.get(path.as_os_str()).expect("the file to be changed exists");
        let file = state.inodes.get_mut(&inode).expect("a name means a file");
        let mut bytes = file.memory.to_vec();
        change(&mut bytes);
        file.memory = bytes.into();
        file.device.clone_from(&file.memory);
        file.dirty.clear();
    }

    /// Removes a file behind the program's back.
    pub fn lose(&self, path: &Path) {
        let mut state = self.state();
        state.names.remove(path.as_os_str());
        state.device_names.remove(path.as_os_str());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no holder of this lock panics but in a failed assertion of a test")
    }

    fn file(&self, state: &mut State, inode: u64, read_only: bool) -> SimFile {
        state.inodes.get_mut(&inode).expect("a name means a file").open_count += 1;
        SimFile { disk: self.clone(), inode, epoch: state.epoch, read_only }
    }
}

fn off() -> io::Error {
    io::Error::other("the simulated machine is off")
}

fn input_output() -> io::Error {
    io::Error::other("simulated input/output error")
}

/// Counts down; true when the moment has come.
fn due(counter: &mut Option<u64>) -> bool {
    match counter {
        Some(0) => {
            *counter = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

impl State {
    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next_random() % bound as u64).expect("the remainder is below a usize")
    }

    /// Begins an operation that changes something; `Ok(true)` when the machine stops in it.
    fn begin_change(&mut self) -> io::Result<bool> {
        if self.is_off {
            return Err(off());
        }
        self.ops += 1;
        self.is_off = due(&mut self.faults.crash_in_ops);
        match &mut self.faults.gone_in_ops {
            Some(0) => Err(input_output()),
            Some(left) => {
                *left -= 1;
                Ok(self.is_off)
            }
            None => Ok(self.is_off),
        }
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|inode| self.inodes[inode].memory.len() as u64).sum()
    }

    fn open_count(&self) -> usize {
        let locks: u32 = self.locks.values().map(|(_, count)| *count).sum();
        self.inodes.values().map(|file| file.open_count).sum::<usize>() + locks as usize
    }

    /// Whether something more can be opened.
    fn take_descriptor(&self) -> io::Result<()> {
        match self.descriptors_max {
            Some(max) if self.open_count() >= max => Err(rustix::io::Errno::MFILE.into()),
            Some(_) | None => Ok(()),
        }
    }

    /// How far a file may grow towards `len`.
    fn room_for(&self, inode: u64, len: u64) -> u64 {
        let now = self.inodes[&inode].memory.len() as u64;
        if len <= now || self.config.capacity_bytes == u64::MAX {
            return len;
        }
        let free = self.config.capacity_bytes.saturating_sub(self.used_bytes());
        len.min(now.saturating_add(free))
    }

    fn change_names(&mut self, change: NameChange) {
        for (path, inode) in &change {
            match inode {
                Some(inode) => self.names.insert(path.clone(), *inode),
                None => self.names.remove(path),
            };
        }
        self.unsynced_names.push(change);
    }

    fn keep_names(&mut self, change: NameChange) {
        for (path, inode) in change {
            match inode {
                Some(inode) => self.device_names.insert(path, inode),
                None => self.device_names.remove(&path),
            };
        }
    }

    /// Forgets the files that nobody can reach any more, whatever happens.
    fn forget_files(&mut self) {
        let Self { inodes, names, device_names, unsynced_names, .. } = self;
        if inodes.len() <= names.len() {
            return;
        }
        let changed = unsynced_names.iter().flatten().filter_map(|(_, inode)| *inode);
        let mut reached: Vec<u64> = names.values().chain(device_names.values()).copied().chain(changed).collect();
        reached.sort_unstable();
        inodes.retain(|inode, file| file.open_count > 0 || reached.binary_search(inode).is_ok());
    }

    fn write(&mut self, inode: u64, buf: &[u8], offset: u64) {
        let page_bytes = self.config.page_bytes;
        let start = usize::try_from(offset).expect("simulated files fit in memory");
        let file = self.inodes.get_mut(&inode).expect("a handle means a file");
        let end = start + buf.len();
        file.memory.write(start, buf);
        for page in start / page_bytes..end.div_ceil(page_bytes) {
            file.dirty.insert(page);
            file.given_up.remove(page);
        }
    }

    /// The device has part of what was written.
    fn write_back_in_part(&mut self, inode: u64) {
        let SimDiskConfig { page_bytes, garbage_pages, .. } = self.config;
        let mut file = self.inodes.remove(&inode).expect("a handle means a file");
        if file.device.len() != file.memory.len() && self.below(2) == 0 {
            file.device.resize(file.memory.len());
        }
        for page in std::mem::take(&mut file.dirty).iter() {
            file.given_up.insert(page);
            let start = page * page_bytes;
            let end = (start + page_bytes).min(file.memory.len());
            if start >= end {
                continue;
            }
            let cut = start + self.below(end - start + 1);
            let choice = self.below(if garbage_pages { 5 } else { 4 });
            let kept = match choice {
                0 => continue,
                1 | 4 => start..end,
                2 => start..cut,
                _ => cut..end,
            };
            file.device.resize(file.device.len().max(kept.end));
            file.device.copy_from(&file.memory, kept.clone());
            if choice == 4 {
                file.device.fill_with(kept, || self.next_random().to_le_bytes()[0]);
            }
        }
        self.inodes.insert(inode, file);
    }

    fn crash(&mut self) {
        for change in std::mem::take(&mut self.unsynced_names) {
            if self.below(2) == 0 {
                self.keep_names(change);
            }
        }
        self.names = self.device_names.clone();
        let inodes: Vec<u64> = self.inodes.keys().copied().collect();
        let mut named: Vec<u64> = self.names.values().copied().collect();
        named.sort_unstable();
        for inode in inodes {
            if named.binary_search(&inode).is_ok() {
                self.write_back_in_part(inode);
                let file = self.inodes.get_mut(&inode).expect("it was put back");
                file.memory.clone_from(&file.device);
                file.given_up.clear();
            } else {
                self.inodes.remove(&inode);
            }
        }
        self.start_over();
    }

    /// Invalidates all open files and locks.
    fn start_over(&mut self) {
        self.locks.clear();
        self.inodes.values_mut().for_each(|file| file.open_count = 0);
        self.epoch += 1;
        self.is_off = false;
        self.descriptors_max = None;
        self.faults = SimFaults::default();
    }
}

impl Disk for SimDisk {
    type File = SimFile;
    type Lock = SimLock;

    fn create_dir_all(&self, _dir: &Path) -> io::Result<()> {
        if self.state().is_off { Err(off()) } else { Ok(()) }
    }

    fn lock_dir(&self, dir: &Path, kind: LockKind) -> io::Result<SimLock> {
        let mut state = self.state();
        if state.is_off {
            return Err(off());
        }
        state.take_descriptor()?;
        let epoch = state.epoch;
        let (held, count) = state.locks.entry(dir.to_path_buf()).or_insert((kind, 0));
        if *count > 0 && (*held, kind) != (LockKind::Shared, LockKind::Shared) {
            return Err(ErrorKind::WouldBlock.into());
        }
        *held = kind;
        *count += 1;
        Ok(SimLock { disk: self.clone(), dir: dir.to_path_buf(), epoch })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        if state.is_off {
            return Err(off());
        }
        let inside = state.names.keys().map(Path::new).filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect())
    }

    fn create(&self, path: &Path) -> io::Result<SimFile> {
        let mut state = self.state();
        if state.names.contains_key(path.as_os_str()) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.take_descriptor()?;
        let crashed = state.begin_change()?;
        let inode = state.next_inode;
        state.next_inode += 1;
        state.inodes.insert(inode, Inode::default());
        state.change_names(vec![(path.into(), Some(inode))]);
        if crashed { Err(off()) } else { Ok(self.file(&mut state, inode, false)) }
    }

    fn open(&self, path: &Path) -> io::Result<SimFile> {
        let mut file = self.open_read_only(path)?;
        file.read_only = false;
        Ok(file)
    }

    fn open_read_only(&self, path: &Path) -> io::Result<SimFile> {
        let mut state = self.state();
        if state.is_off {
            return Err(off());
        }
        let inode = *state.names.get(path.as_os_str()).ok_or(ErrorKind::NotFound)?;
        state.take_descriptor()?;
        Ok(self.file(&mut state, inode, true))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = *state.names.get(from.as_os_str()).ok_or(ErrorKind::NotFound)?;
        let crashed = state.begin_change()?;
        state.change_names(vec![(from.into(), None), (to.into(), Some(inode))]);
        if crashed { Err(off()) } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(path.as_os_str()) {
            return Err(ErrorKind::NotFound.into());
        }
        let crashed = state.begin_change()?;
        state.change_names(vec![(path.into(), None)]);
        if crashed { Err(off()) } else { Ok(()) }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.take_descriptor()?;
        if state.begin_change()? {
            return Err(off());
        }
        let changes = std::mem::take(&mut state.unsynced_names);
        for change in changes {
            if change.iter().any(|(path, _)| Path::new(path).parent() == Some(dir)) {
                state.keep_names(change);
            } else {
                state.unsynced_names.push(change);
            }
        }
        state.forget_files();
        Ok(())
    }

    fn entropy(&self) -> io::Result<u64> {
        Ok(self.state().next_random())
    }
}

impl SimFile {
    fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.is_off || state.epoch != self.epoch { Err(off()) } else { Ok(state) }
    }

    fn enter_to_write(&self) -> io::Result<MutexGuard<'_, State>> {
        if self.read_only { Err(ErrorKind::PermissionDenied.into()) } else { self.enter() }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.enter()?.inodes[&self.inode].memory.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.enter()?;
        let len = state.inodes[&self.inode].memory.len();
        let start = usize::try_from(offset).expect("simulated files fit in memory").min(len);
        let mut count = buf.len().min(len - start);
        if state.config.short_reads && count > 0 && state.below(4) == 0 {
            count = 1 + state.below(count);
        }
        state.inodes[&self.inode].memory.read(start, &mut buf[..count]);
        Ok(count)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.enter_to_write()?;
        let crashed = state.begin_change()?;
        let fails = due(&mut state.faults.write_error_in);
        let wanted = offset + buf.len() as u64;
        let end = state.room_for(self.inode, wanted);
        let mut fits = usize::try_from(end.saturating_sub(offset)).expect("no longer than the buffer").min(buf.len());
        if fails {
            fits = state.below(fits + 1);
        }
        if fits > 0 {
            state.write(self.inode, &buf[..fits], offset);
        }
        match (crashed, fails, end < wanted) {
            (true, _, _) => Err(off()),
            (_, true, _) => Err(input_output()),
            (_, _, true) => Err(ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn allocate(&self, len: u64, _pace: &Pace) -> io::Result<()> {
        let mut state = self.enter_to_write()?;
        let crashed = state.begin_change()?;
        if state.room_for(self.inode, len) < len {
            return Err(ErrorKind::StorageFull.into());
        }
        let len = usize::try_from(len).expect("simulated files fit in memory");
        let file = state.inodes.get_mut(&self.inode).expect("a handle means a file");
        file.memory.resize(file.memory.len().max(len));
        if crashed { Err(off()) } else { Ok(()) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.enter_to_write()?;
        let crashed = state.begin_change()?;
        let len = usize::try_from(len).expect("simulated files fit in memory");
        let file = state.inodes.get_mut(&self.inode).expect("a handle means a file");
        file.memory.resize(len);
        if crashed { Err(off()) } else { Ok(()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.enter()?;
        while state.syncs == SimSyncs::Held {
            state.held_syncs += 1;
            state =
                self.disk.0.syncs_changed.wait(state).expect("no holder of this lock panics but in a failed assertion of a test");
            state.held_syncs -= 1;
        }
        if state.epoch != self.epoch {
            return Err(off());
        }
        if state.syncs == SimSyncs::Ignored && !state.is_off {
            return Ok(());
        }
        let begun = state.begin_change();
        if state.is_off {
            return Err(off());
        }
        if begun.is_err() || due(&mut state.faults.sync_error_in) {
            state.write_back_in_part(self.inode);
            return Err(input_output());
        }
        let page_bytes = state.config.page_bytes;
        let file = state.inodes.get_mut(&self.inode).expect("a handle means a file");
        let Inode { memory, device, dirty, given_up, .. } = file;
        if device.len() == 0 && given_up.count == 0 {
            // All of it is new.
            device.clone_from(memory);
            dirty.clear();
            return Ok(());
        }
        device.resize(memory.len());
        dirty.ranges(page_bytes, memory.len()).for_each(|range| device.copy_from(memory, range));
        dirty.clear();
        Ok(())
    }

    fn drop_cache(&self) -> io::Result<()> {
        let mut state = self.enter()?;
        let page_bytes = state.config.page_bytes;
        let file = state.inodes.get_mut(&self.inode).expect("a handle means a file");
        let Inode { memory, device, given_up, .. } = file;
        for range in given_up.ranges(page_bytes, memory.len()) {
            let device_end = range.end.min(device.len()).max(range.start);
            memory.copy_from(device, range.start..device_end);
            memory.fill_with(device_end..range.end, || 0);
        }
        given_up.clear();
        Ok(())
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        // If another thread panicked, consistency no longer matters.
        let Ok(mut state) = self.disk.0.state.lock() else { return };
        if state.epoch == self.epoch
            && let Some(file) = state.inodes.get_mut(&self.inode)
        {
            file.open_count -= 1;
        }
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.epoch == self.epoch
            && let Some((_, count)) = state.locks.get_mut(&self.dir)
        {
            *count = count.saturating_sub(1);
        }
    }
}

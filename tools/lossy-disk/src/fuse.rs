//! What the kernel asks of the folder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};
use walras_log_store::sim_disk::{SimDisk, SimFile};
use walras_log_store::{Disk, DiskFile, Pace};

use crate::tree::Tree;

/// The kernel keeps nothing.
const NOTHING: Duration = Duration::ZERO;
const UNCACHED: FopenFlags = FopenFlags::FOPEN_DIRECT_IO;
const BLOCK_BYTES: u32 = 4096;
/// What there seems to be room for.
const BLOCKS: u64 = 1 << 28;

/// The disk, and what is open on it.
#[derive(Debug)]
pub(crate) struct Lossy {
    disk: SimDisk,
    tree: Arc<Mutex<Tree>>,
    open: BTreeMap<u64, SimFile>,
    next_handle: u64,
}

type Answer<T> = Result<T, Errno>;

fn errno(error: &io::Error) -> Errno {
    if let Some(number) = error.raw_os_error() {
        return Errno::from_i32(number);
    }
    match error.kind() {
        io::ErrorKind::NotFound => Errno::ENOENT,
        io::ErrorKind::AlreadyExists => Errno::EEXIST,
        io::ErrorKind::PermissionDenied => Errno::EACCES,
        io::ErrorKind::StorageFull => Errno::ENOSPC,
        _ => Errno::EIO,
    }
}

impl Lossy {
    pub(crate) fn new(disk: SimDisk, tree: Arc<Mutex<Tree>>) -> Self {
        Self { disk, tree, open: BTreeMap::new(), next_handle: 1 }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().expect("no holder of this lock panics")
    }

    fn path(&self, number: INodeNo) -> Answer<PathBuf> {
        self.tree().path(number.0).map(Path::to_path_buf).ok_or(Errno::ESTALE)
    }

    fn child(&self, parent: INodeNo, name: &OsStr) -> Answer<PathBuf> {
        Ok(self.path(parent)?.join(name))
    }

    fn attributes(&self, path: &Path) -> Answer<FileAttr> {
        let mut tree = self.tree();
        let is_folder = tree.folders.contains(path);
        let size = if is_folder {
            0
        } else {
            let file = self.disk.open_read_only(path).map_err(|error| errno(&error))?;
            file.len().map_err(|error| errno(&error))?
        };
        let (kind, mode) = if is_folder { (FileType::Directory, 0o755) } else { (FileType::RegularFile, 0o644) };
        let then = SystemTime::UNIX_EPOCH;
        Ok(FileAttr {
            ino: INodeNo(tree.number(path)),
            size,
            blocks: size.div_ceil(512),
            atime: then,
            mtime: then,
            ctime: then,
            crtime: then,
            kind,
            perm: tree.mode(path, mode),
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        })
    }

    fn attributes_of(&self, number: INodeNo, handle: Option<FileHandle>) -> Answer<FileAttr> {
        match self.path(number) {
            Ok(path) => self.attributes(&path),
            // A file without a name that is open.
            Err(stale) => {
                let file = handle.and_then(|handle| self.open.get(&handle.0)).ok_or(stale)?;
                let size = file.len().map_err(|error| errno(&error))?;
                let mut attributes = self.attributes(Path::new("/"))?;
                (attributes.ino, attributes.size, attributes.kind) = (number, size, FileType::RegularFile);
                Ok(attributes)
            }
        }
    }

    fn take_handle(&mut self, file: SimFile) -> FileHandle {
        let handle = self.next_handle;
        self.next_handle += 1;
        self.open.insert(handle, file);
        FileHandle(handle)
    }

    fn file(&self, handle: FileHandle) -> Answer<&SimFile> {
        self.open.get(&handle.0).ok_or(Errno::EBADF)
    }

    fn create_file(&mut self, parent: INodeNo, name: &OsStr, mode: u32) -> Answer<(FileAttr, FileHandle)> {
        let path = self.child(parent, name)?;
        let file = self.disk.create(&path).map_err(|error| errno(&error))?;
        self.tree().set_mode(&path, mode as u16);
        let attributes = self.attributes(&path)?;
        Ok((attributes, self.take_handle(file)))
    }

    fn set_attributes(
        &self,
        number: INodeNo,
        handle: Option<FileHandle>,
        mode: Option<u32>,
        size: Option<u64>,
    ) -> Answer<FileAttr> {
        if let Some(size) = size {
            let opened;
            let file = match handle.and_then(|handle| self.open.get(&handle.0)) {
                Some(file) => file,
                None => {
                    opened = self.disk.open(&self.path(number)?).map_err(|error| errno(&error))?;
                    &opened
                }
            };
            file.set_len(size).map_err(|error| errno(&error))?;
        }
        if let Some(mode) = mode {
            let path = self.path(number)?;
            self.tree().set_mode(&path, mode as u16);
        }
        self.attributes_of(number, handle)
    }

    fn make_folder(&self, parent: INodeNo, name: &OsStr, mode: u32) -> Answer<FileAttr> {
        let path = self.child(parent, name)?;
        if self.attributes(&path).is_ok() {
            return Err(Errno::EEXIST);
        }
        let mut tree = self.tree();
        tree.folders.insert(path.clone());
        tree.set_mode(&path, mode as u16);
        drop(tree);
        self.attributes(&path)
    }

    fn names(&self, folder: INodeNo) -> Answer<Vec<(INodeNo, FileType, String)>> {
        let path = self.path(folder)?;
        let files = self.disk.list(&path).map_err(|error| errno(&error))?;
        let mut tree = self.tree();
        let inside = tree.folders.iter().filter(|other| other.parent() == Some(path.as_path()));
        let folders: Vec<String> = inside.filter_map(|other| Some(other.file_name()?.to_str()?.to_owned())).collect();
        let kinds = folders.into_iter().map(|name| (FileType::Directory, name));
        let all: Vec<_> = kinds.chain(files.into_iter().map(|name| (FileType::RegularFile, name))).collect();
        Ok(all.into_iter().map(|(kind, name)| (INodeNo(tree.number(&path.join(&name))), kind, name)).collect())
    }

    fn rename_file(&self, from: &Path, to: &Path) -> Answer<()> {
        let mut tree = self.tree();
        if tree.folders.contains(from) || tree.folders.contains(to) {
            return Err(Errno::ENOTSUP);
        }
        self.disk.rename(from, to).map_err(|error| errno(&error))?;
        tree.rename(from, to);
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> Answer<()> {
        let mut tree = self.tree();
        let has_files = !self.disk.list(path).map_err(|error| errno(&error))?.is_empty();
        if has_files || tree.folders.iter().any(|other| other.parent() == Some(path)) {
            return Err(Errno::ENOTEMPTY);
        }
        tree.forget(path);
        Ok(())
    }
}

/// A reply without content.
fn empty(reply: ReplyEmpty, done: Answer<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(number) => reply.error(number),
    }
}

fn entry(reply: ReplyEntry, found: Answer<FileAttr>) {
    match found {
        Ok(attributes) => reply.entry(&NOTHING, &attributes, Generation(0)),
        Err(number) => reply.error(number),
    }
}

fn attributes(reply: ReplyAttr, found: Answer<FileAttr>) {
    match found {
        Ok(attributes) => reply.attr(&NOTHING, &attributes),
        Err(number) => reply.error(number),
    }
}

/// The file system as the library calls it.
#[derive(Debug)]
pub(crate) struct Mounted(Mutex<Lossy>);

impl Mounted {
    pub(crate) fn new(lossy: Lossy) -> Self {
        Self(Mutex::new(lossy))
    }

    fn lossy(&self) -> MutexGuard<'_, Lossy> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

impl Filesystem for Mounted {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let lossy = self.lossy();
        entry(reply, lossy.child(parent, name).and_then(|path| lossy.attributes(&path)));
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, self.lossy().attributes_of(number, handle));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        attributes(reply, self.lossy().set_attributes(number, handle, mode, size));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        entry(reply, self.lossy().make_folder(parent, name, mode & !umask));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let lossy = self.lossy();
        let done = lossy.child(parent, name).and_then(|path| {
            lossy.disk.remove(&path).map_err(|error| errno(&error))?;
            lossy.tree().forget(&path);
            Ok(())
        });
        empty(reply, done);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let lossy = self.lossy();
        empty(reply, lossy.child(parent, name).and_then(|path| lossy.remove_folder(&path)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let lossy = self.lossy();
        let paths = lossy.child(parent, name).and_then(|from| Ok((from, lossy.child(new_parent, new_name)?)));
        empty(reply, paths.and_then(|(from, to)| lossy.rename_file(&from, &to)));
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut lossy = self.lossy();
        let opened = lossy.path(number).and_then(|path| lossy.disk.open(&path).map_err(|error| errno(&error)));
        match opened {
            Ok(file) => reply.opened(lossy.take_handle(file), UNCACHED),
            Err(number) => reply.error(number),
        }
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, _: i32, reply: ReplyCreate) {
        match self.lossy().create_file(parent, name, mode & !umask) {
            Ok((attributes, handle)) => reply.created(&NOTHING, &attributes, Generation(0), handle, UNCACHED),
            Err(number) => reply.error(number),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; size as usize];
        let lossy = self.lossy();
        let read = lossy.file(handle).and_then(|file| file.read_at(&mut bytes, offset).map_err(|error| errno(&error)));
        match read {
            Ok(count) => reply.data(&bytes[..count]),
            Err(number) => reply.error(number),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let lossy = self.lossy();
        match lossy.file(handle).and_then(|file| file.write_all_at(bytes, offset).map_err(|error| errno(&error))) {
            Ok(()) => reply.written(u32::try_from(bytes.len()).expect("the kernel asks for less than 4 GiB at a time")),
            Err(number) => reply.error(number),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Whoever closes a file has not asked that it be durable.
        reply.ok();
    }

    fn release(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, _: Option<LockOwner>, _: bool, reply: ReplyEmpty) {
        self.lossy().open.remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let lossy = self.lossy();
        empty(reply, lossy.file(handle).and_then(|file| file.sync_data().map_err(|error| errno(&error))));
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let lossy = self.lossy();
        let path = lossy.path(number);
        empty(reply, path.and_then(|path| lossy.disk.sync_dir(&path).map_err(|error| errno(&error))));
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let names = match self.lossy().names(number) {
            Ok(names) => names,
            Err(number) => return reply.error(number),
        };
        let own = [(number, FileType::Directory, ".".to_owned()), (INodeNo::ROOT, FileType::Directory, "..".to_owned())];
        let all = (1..).zip(own.into_iter().chain(names));
        for (place, (number, kind, name)) in all.skip(usize::try_from(offset).unwrap_or(0)) {
            if reply.add(number, place, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn fallocate(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, len: u64, mode: i32, reply: ReplyEmpty) {
        if mode != 0 {
            return reply.error(Errno::ENOTSUP);
        }
        let lossy = self.lossy();
        let done = lossy
            .file(handle)
            .and_then(|file| file.allocate(offset.saturating_add(len), &Pace::default()).map_err(|error| errno(&error)));
        empty(reply, done);
    }
}

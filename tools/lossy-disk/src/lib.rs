//! A folder on a disk that loses what was not synced: the simulated disk of `edge/log-store`, mounted by FUSE, so that real
//! processes can be held to what they acknowledged. Killing a process keeps what it wrote in the kernel's memory;
//! [`LossyFolder::lose_power`] does not.
//!
//! Files and names behave as [`walras_log_store::sim_disk`] says: what was not synced survives page by page, or not, torn or as
//! garbage. The kernel caches nothing of it. *Deliberately absent*: links, ownership, times, folders that are renamed; folders are
//! durable at once, and permissions are kept and mean nothing.
//!
//! *Invariant*: after the loss of power only what was synced is certain to be there.
//!
//! *Source*: LazyFS (Ramos, Pereira et al., "When Amnesia Strikes", VLDB 2024), a FUSE file system that drops its cache on command.
//!
//! *Start reading* at [`LossyFolder::mount`], then `folder.rs`.

#![cfg(target_os = "linux")]

mod folder;
mod fuse;
mod tree;

pub use folder::{LossyFolder, MountError};

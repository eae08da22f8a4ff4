//! A FUSE file system on a share of an SMB server.
//!
//! [`Mounted`] is a mount: it takes the requests of the kernel, and the client library executes
//! them on the server. `docs/design/mount.md` has the rules of its caches.
//!
//! From the kernel to the server: `filesystem` receives a request and starts a task
//! (`executor`); the task runs a function of `volume`, which uses the tables `inodes` and
//! `handles`; `attributes` and `errno` make the reply.
#![forbid(unsafe_code)]

mod attributes;
mod cache;
mod cached_names;
mod counters;
mod directory;
mod errno;
mod executor;
mod filesystem;
mod handles;
mod held;
mod inodes;
mod invalidator;
mod kept;
mod leased;
mod locks;
mod mode;
mod mounted;
mod names;
mod opens;
mod options;
mod timer;
mod volume;

pub use counters::MountStatistics;
pub use mounted::{Mounted, Unmounter};
pub use options::{Cache, MountOptions, OptionError};

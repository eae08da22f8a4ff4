//! Suites and programs of other projects that use a mounted file system: by the kernel in a guest,
//! or by FUSE on this machine.

pub mod fsx;
pub mod known;
pub mod pjdfstest;
pub mod workload;

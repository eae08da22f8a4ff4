//! Tests of smbeam against peers of other projects.
//!
//! The library finds the peers ([`lab`]), starts the server under test ([`subject`]) and drives the
//! clients; the modules in `tests/interop/` are named after their promises.
//! `SMBEAM_SUBJECT=samba` runs every test against the lab's smbd: a test that smbd fails is
//! probably wrong.
#![forbid(unsafe_code)]

pub mod background;
pub mod certificates;
pub mod client;
pub mod direct;
pub mod exercise;
pub mod files;
pub mod fuse;
pub mod guest;
pub mod harness;
pub mod http;
pub mod lab;
pub mod metrics;
pub mod mounts;
pub mod namespace;
pub mod ntlm;
pub mod ports;
pub mod python;
pub mod quic;
pub mod random;
pub mod raw;
pub mod rdma;
pub mod samba_tools;
pub mod scale;
pub mod scratch;
pub mod script;
pub mod session;
pub mod smbclient;
pub mod stage;
pub mod subject;
pub mod suites;
pub mod torture;
pub mod unix_tree;
pub mod volume;
pub mod wait;

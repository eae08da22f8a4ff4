//! The functions that the fuzzers run: one for each target of `fuzz/`, with any bytes. None of them
//! may panic. The tests run them with every committed input.

mod caching;
mod client;
mod decode;
mod rpc;
mod server;
mod smbd;

pub use caching::{capture_caching, context_lists};
pub use client::{client_frames, client_script};
pub use server::{capture, frames, frames_over_rdma, script};
pub use smbd::smbd_exchange;

/// The function of a fuzz target: it processes any input and panics only if it finds a fault.
pub type Target = fn(&[u8]);

/// All fuzz targets: the name of each, which is that of its directory in `fuzz/`, and its function.
pub const TARGETS: [(&str, Target); 13] = [
    ("decode", decode::messages),
    ("tokens", decode::tokens),
    ("nbt", decode::nbt),
    ("create_contexts", decode::create_contexts),
    ("negotiate_contexts", decode::negotiate_contexts),
    ("security", decode::security),
    ("fscc", decode::fscc),
    ("rpc", rpc::calls),
    ("pipe", rpc::pipe),
    ("server_bytes", server::bytes),
    ("client_bytes", client::bytes),
    ("server_operations", server::operations),
    ("smbd", smbd::smbd),
];

/// Runs the fuzz target with the name `name` on one input.
///
/// # Panics
/// Panics if no target has this name, or if the target finds a fault.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.unwrap_or_else(|| panic!("unknown target {name}"));
    target(input);
}

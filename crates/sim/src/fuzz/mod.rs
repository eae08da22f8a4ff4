//! What the fuzzers run: one function for each target of `fuzz/`, from any bytes. None of them
//! may panic. The tests run them over every input that was ever found.

mod client;
mod decode;
mod rpc;
mod server;
mod smbd;

pub use client::{client_frames, client_script};
pub use server::{capture, frames, frames_over_rdma, script};
pub use smbd::smbd_exchange;

/// A target.
pub type Target = fn(&[u8]);

/// Every target, by the name that it has in `fuzz/`.
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

/// Runs a target.
///
/// # Panics
/// When there is none of that name, or when it finds something.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.unwrap_or_else(|| panic!("there is no target {name}"));
    target(input);
}

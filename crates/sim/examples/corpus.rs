//! Writes the seeds of the fuzzers into a directory: `cargo run -p smbeam-sim --example corpus
//! fuzz/corpus`. The seeds are frames that the clients of calm runs send, frames that a client
//! receives, exchanges of SMB Direct, and random scripts.

use std::path::Path;
use std::{env, fs, io};

use smbeam_sim::fuzz::{
    capture, capture_caching, client_frames, client_script, context_lists, frames,
    frames_over_rdma, script, smbd_exchange,
};

/// Number of runs that supply frames.
const RUNS: u64 = 12;
/// Maximum length of a frame in bytes: a corpus is small.
const FRAME_MAX: usize = 4096;
/// Offset of the security token in a SESSION_SETUP. \[MS-SMB2\] 2.2.5
const TOKEN: usize = 88;

fn main() -> io::Result<()> {
    let root = env::args()
        .nth(1)
        .expect("the first argument is the directory of the corpora");
    let root = Path::new(&root);
    for seed in 0..RUNS {
        let mut sent = capture(seed);
        sent.retain(|frame| frame.len() < FRAME_MAX);
        put(
            root,
            "server_bytes",
            &format!("session-{seed}"),
            &frames(&sent),
        )?;
        put(
            root,
            "server_bytes",
            &format!("rdma-{seed}"),
            &frames_over_rdma(&sent),
        )?;
        let script = script(seed, 200);
        put(
            root,
            "server_operations",
            &format!("script-{seed}"),
            &script,
        )?;
        put_caching(root, seed)?;
        let answers = client_frames(seed);
        put(root, "client_bytes", &format!("answers-{seed}"), &answers)?;
        let script = client_script(seed, 200);
        put(root, "client_bytes", &format!("script-{seed}"), &script)?;
        if seed < 3 {
            put_messages(root, seed, &sent)?;
        }
    }
    for (number, list) in context_lists().iter().enumerate() {
        let name = format!("leases-{number}");
        put(root, "create_contexts", &name, list)?;
    }
    put_exchanges(root)
}

/// Frames and scripts of clients that cache files and acknowledge breaks.
fn put_caching(root: &Path, seed: u64) -> io::Result<()> {
    let mut sent = capture_caching(seed, seed.is_multiple_of(2));
    sent.retain(|frame| frame.len() < FRAME_MAX);
    let name = format!("caching-{seed}");
    put(root, "server_bytes", &name, &frames(&sent))?;
    put(root, "server_operations", &name, &script(seed, 2000))
}

/// Exchanges of SMB Direct, and some with each byte of a header at its minimum and its maximum.
fn put_exchanges(root: &Path) -> io::Result<()> {
    for (side, is_server) in [("client", false), ("server", true)] {
        for seed in 0..RUNS {
            let input = smbd_exchange(is_server, None, seed);
            put(root, "smbd", &format!("{side}-{seed}"), &input)?;
        }
        for (number, at) in (0..32).map(|at| (0, at)).chain((0..20).map(|at| (2, at))) {
            for value in [0, 0xFF] {
                let input = smbd_exchange(is_server, Some((number, at, value)), 1);
                let name = format!("{side}-{number}-{at}-{value}");
                put(root, "smbd", &name, &input)?;
            }
        }
    }
    Ok(())
}

fn put_messages(root: &Path, seed: u64, sent: &[Vec<u8>]) -> io::Result<()> {
    for (number, frame) in sent.iter().enumerate() {
        let command = frame[12];
        // Requests have the odd numbers among the decoders, in the order of the commands.
        let choice = 1 + 2 * command;
        let name = format!("request-{seed}-{number}");
        put(root, "decode", &name, &[&[choice], &frame[..]].concat())?;
        if command == 1 {
            let token = &frame[TOKEN..];
            let length = (token.len() as u16).to_le_bytes();
            let name = format!("leg-{seed}-{number}");
            put(root, "tokens", &name, &[&length[..], token].concat())?;
        }
    }
    Ok(())
}

fn put(root: &Path, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let directory = root.join(target);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join(name), bytes)
}

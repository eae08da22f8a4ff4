//! Cases that move large files, at full size, again and again.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::record::Files;
use crate::lab;
use crate::test::build::Built;
use crate::test::interop;

/// The modules of the interop program whose cases move large files.
const MODULES: [&str; 5] = [
    "client_opens_large_files_twice::",
    "smbclient_speaks_quic::",
    "client_uses_many_channels::",
    "bad_input_over_smbdirect_disturbs_no_other_client::killed_clients",
    "direct_shares_keep_every_byte::",
];

/// Runs rounds of the cases until the time is over, at least one.
pub(super) fn run(built: &Built, time: Duration) -> Result<Files> {
    let mut files = Files::default();
    if let Err(error) = lab::build() {
        println!("lab: {error:#}");
        return Ok(files);
    }
    let start = Instant::now();
    loop {
        let counts = interop::run_modules(built, &MODULES)?;
        files.passed += u64::from(counts.passed);
        files.failed += u64::from(counts.failed);
        if start.elapsed() >= time {
            return Ok(files);
        }
    }
}

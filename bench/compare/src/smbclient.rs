//! smbclient transfers a large file, plain, signed or encrypted.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::Server;

use crate::environment::{Environment, LARGE_FILE, Storage};
use crate::sample::Work;

/// The name of the copy of the large file.
pub(crate) const COPY: &str = "copy.bin";

/// The direction of the transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transfer {
    /// Download to /dev/null.
    Get,
    /// Upload to a new file.
    Put,
}

/// Transfers the large file of `storage`.
pub(crate) fn run(
    environment: &Environment,
    server: &Server,
    storage: Storage,
    transfer: Transfer,
    protection: Protection,
) -> Result<Work> {
    let client = Smbclient::new(environment.lab(), server)
        .share(storage.name())
        .protection(protection)
        .directory(environment.directory(storage));
    let commands = match transfer {
        Transfer::Get => format!("get {LARGE_FILE} /dev/null"),
        Transfer::Put => format!("put {LARGE_FILE} {COPY}"),
    };
    let text = client.run(&commands)?;
    let bytes = fs::metadata(environment.directory(storage).join(LARGE_FILE))?.len();
    if let Transfer::Put = transfer {
        let copy = environment.directory(storage).join(COPY);
        let arrived = check_length(&copy, bytes);
        fs::remove_file(&copy)?;
        arrived?;
    }
    let speed = parse(&text).with_context(|| format!("smbclient reports no speed:\n{text}"))?;
    Ok(Work {
        bytes,
        ops: 0,
        seconds: bytes as f64 / speed,
        cpu_seconds: 0.0,
    })
}

/// Fails unless the file `path` has `bytes` bytes.
pub(crate) fn check_length(path: &Path, bytes: u64) -> Result<()> {
    let length = fs::metadata(path)?.len();
    ensure!(length == bytes, "{length} of {bytes} bytes arrived");
    Ok(())
}

/// Bytes per second from "... (205764.5 KiloBytes/sec) (average ...)", where a kilobyte has 1024
/// bytes.
fn parse(text: &str) -> Option<f64> {
    let (_, rest) = text.rsplit_once("(average ")?;
    let kilobytes: f64 = rest.split_whitespace().next()?.parse().ok()?;
    (kilobytes > 0.0).then_some(kilobytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn both_forms_of_the_speed_are_read() {
        let get = "getting file \\a of size 9 as b (2.5 KiloBytes/sec) (average 2.0 KiloBytes/sec)";
        let put = "putting file a as \\b (142430.9 kB/s) (average 1000.0 kB/s)";
        assert_eq!(parse(get), Some(2048.0));
        assert_eq!(parse(put), Some(1_024_000.0));
        assert_eq!(parse("NT_STATUS_ACCESS_DENIED"), None);
    }
}

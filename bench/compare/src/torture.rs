//! The benches of smbtorture: smb2.bench.read, write and echo.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::Protection;
use smbeam_tests::subject::{ALICE, Server};
use smbeam_tests::wait;

use crate::environment::Storage;
use crate::options::Options;
use crate::sample::Work;

/// Additional time for the login and the files. smbtorture can hang after its result, and is killed
/// then.
const SPARE: Duration = Duration::from_secs(15);

/// A bench of smbtorture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// Reads the start of a file without data.
    Read,
    /// Writes the start of a file.
    Write,
    /// Sends ECHO.
    Echo,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Test::Read => "read",
            Test::Write => "write",
            Test::Echo => "echo",
        }
    }
}

/// Runs `test` with operations of `io_size` bytes.
pub(crate) fn run(
    lab: &Lab,
    server: &Server,
    storage: Storage,
    test: Test,
    io_size: u64,
    options: &Options,
) -> Result<Work> {
    let mut command = lab.command_under(None, "smbtorture");
    command
        .arg(format!("//{}/{}", server.tcp.ip(), storage.name()))
        .args(["-p", &server.tcp.port().to_string()])
        .args(["-U", &format!("{}%{}", ALICE.name, ALICE.password)])
        .arg(format!("--client-protection={}", options.protection.word()));
    // smbtorture takes encryption from its credentials, and signing from its configuration.
    if options.protection == Protection::Sign {
        command.arg("--option=client signing=required");
    }
    for (name, value) in [
        ("timelimit", u64::from(options.seconds)),
        ("nprocs", u64::from(options.connections)),
        ("qdepth", u64::from(options.depth)),
        ("io_size", io_size),
    ] {
        if value > 0 {
            command.arg(format!("--option=torture:{name}={value}"));
        }
    }
    let scratch = Scratch::new("torture")?;
    let path = scratch.path().join("text");
    let file = File::create(&path)?;
    command
        .arg(format!("smb2.bench.{}", test.name()))
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    let mut child = command.spawn().context("cannot enter the lab")?;
    let limit = Duration::from_secs(options.seconds.into()) + SPARE;
    wait::for_end(&mut child, limit)?;
    let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    let samples = parse(&text);
    ensure!(!samples.is_empty(), "smbtorture measures nothing:\n{text}");
    let ops = samples.iter().sum();
    Ok(Work {
        bytes: ops * io_size,
        ops,
        seconds: samples.len() as f64,
        cpu_seconds: 0.0,
    })
}

/// The operations of each second from "1.00 second: read[num/s=17,088;bytes/s=...;...]".
fn parse(text: &str) -> Vec<u64> {
    let numbers = text.split("[num/s=").skip(1);
    numbers
        .filter_map(|rest| {
            let end = rest.find([';', ']'])?;
            rest[..end].replace(',', "").parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn every_second_is_counted() {
        let text = "1.00 second: read[num/s=17,088;bytes/s=1,119,879,168]   2.00 second: \
                    read[num/s=9;x=1]\n2.00 seconds\nsuccess: read\n";
        assert_eq!(parse(text), [17_088, 9]);
        assert!(parse("failure: read").is_empty());
    }
}

//! A server for hostile clients, with two other clients that must not notice them.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::client::Client;
use crate::direct::kind;
use crate::direct::smb::{Named, SMB_3_0_2, Session};
use crate::scratch::Scratch;
use crate::subject::{Plan, Server, Subject};
use crate::wait;

/// The name of the file in the share.
pub const FILE: &str = "file";
/// Length of the file in bytes.
pub const FILE_BYTES: usize = 64 << 10;
/// How long the server may take to notice that connections have ended.
const END_LIMIT: Duration = Duration::from_secs(30);
/// The key of the memory of the witness.
const KEY: u32 = 77;

/// A server, with one client over SMB Direct and one over TCP: the witnesses.
#[derive(Debug)]
pub struct Site {
    direct: Session,
    tcp: Session,
    /// The memory of the first witness, which the server writes.
    memory: Vec<u8>,
    /// The server.
    pub server: Server,
    /// Where its share is.
    pub scratch: Scratch,
}

impl Site {
    /// With more limits of the server.
    pub fn new(limits: &[(&str, u64)]) -> Result<Self> {
        let scratch = Scratch::new("rdma")?;
        let share = scratch.open_directory("share")?;
        let path = share.join(FILE);
        fs::write(&path, contents())?;
        open_to_all(&path)?;
        let mut plan = Plan::sharing(&share);
        let limits = limits.iter();
        plan.limits = limits
            .map(|(name, value)| ((*name).into(), *value))
            .collect();
        let server = Server::start_as(Subject::Smbeam, None, None, plan)?;
        let mut direct = Session::direct(&server, SMB_3_0_2, FILE)?;
        let tcp = Session::tcp(&server, SMB_3_0_2, FILE)?;
        let memory = vec![0; 4096];
        direct.below()?.announce(kind::TO_WRITE, KEY, &memory)?;
        Ok(Self {
            direct,
            tcp,
            memory,
            server,
            scratch,
        })
    }

    /// Checks that both witnesses can still work.
    pub fn check(&mut self) -> Result<()> {
        self.tcp.echo().context("a witness by TCP")?;
        self.memory.fill(0);
        let piece = (self.memory.as_ptr() as u64, KEY, 4096);
        let body = self.direct.read_body(&Named::new(4096, &[piece]));
        let read = self.direct.call(8, &body).context("a witness by RDMA")?;
        ensure!(read.status() == 0, "a witness is refused: {read:?}");
        // The server wrote it behind the back of the compiler: read it again.
        let memory = std::hint::black_box(&self.memory);
        let expected = fs::read(self.scratch.path().join("share").join(FILE))?;
        ensure!(
            memory[..] == expected[..4096],
            "a witness reads something else"
        );
        Ok(())
    }

    /// Waits until the log has one line with all these words.
    pub fn wait_for_log(&self, words: &[&str]) -> Result<()> {
        wait::for_line(|| self.server.log(), words).map(drop)
    }

    /// Waits until the witnesses are the only connected clients.
    pub fn wait_until_alone(&self) -> Result<()> {
        let client = Client::of("nowhere")?;
        let socket = self.server.control().display().to_string();
        let count = || {
            let output = client.try_run(&["status", "--json", "--socket", &socket])?;
            ensure!(output.code == Some(0), "{output}");
            let status: Value = serde_json::from_str(&output.text)?;
            let connections = status["connections"].as_array();
            Ok(connections.context("no list of connections")?.len())
        };
        let mut last = Ok(0);
        wait::until("the other connections to end", END_LIMIT, || {
            last = count();
            !matches!(last, Ok(connections) if connections != 2)
        })?;
        last.map(drop)
    }

    /// Length of the largest file of the share beside [`FILE`], in bytes.
    pub fn largest_part(&self) -> u64 {
        let entries = fs::read_dir(self.scratch.path().join("share"));
        let entries = entries.into_iter().flatten().flatten();
        let others = entries.filter(|entry| entry.file_name() != FILE);
        let lengths = others.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        lengths.max().unwrap_or(0)
    }

    /// Bytes of memory that the server has, of all kinds.
    pub fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.context("no VmRSS")?.parse::<u64>()? << 10)
    }
}

/// The contents of the file.
pub fn contents() -> Vec<u8> {
    (0..FILE_BYTES).map(|index| (index % 251) as u8).collect()
}

/// Lets every user write the file: the server may act as any of them.
fn open_to_all(path: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o666),
    )?)
}

//! A server with one share, and our own client library in front of it.
//!
//! Each case of these programs is run twice: against smbeam and against the lab's smbd. What smbd
//! and we agree on is no misunderstanding of our own. `SMBEAM_SUBJECT` keeps to one of them;
//! without a lab the half that is smbd's is skipped. The cases of `for_each_transport!` are run
//! against smbeam over all [`TRANSPORTS`], and against smbd over TCP.
#![allow(dead_code, unused_macros, reason = "each program takes what it needs")]

pub(crate) mod proxy;

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use client::tls::Trust;
use client::{
    Client, Credentials, Endpoint, Error, Options, RdmaChoice, Session, Share, Status, Transport,
    Wait,
};
use smbeam_tests::harness::{self, Test};
use smbeam_tests::lab::Lab;
use smbeam_tests::random::Random;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject, TRANSPORTS, User, rdma_folder};

/// The share that every rig has.
pub(crate) const SHARE: &str = "data";
/// What takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A case, which is told the server that it is against.
pub(crate) type Case = fn(Subject) -> Result<()>;
/// A case, which is told besides how the server is reached.
pub(crate) type PeerCase = fn(Peer) -> Result<()>;

/// A server, and how it is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) subject: Subject,
    pub(crate) transport: Transport,
}

impl From<Subject> for Peer {
    fn from(subject: Subject) -> Self {
        Self {
            subject,
            transport: Transport::Tcp,
        }
    }
}

impl Peer {
    /// All there are of a server.
    fn of(subject: Subject) -> Vec<Self> {
        let transports = TRANSPORTS.iter().map(|name| transport(name));
        let peers = transports.map(|transport| Self { subject, transport });
        match subject {
            Subject::Smbeam => peers.collect(),
            Subject::Samba => vec![subject.into()],
        }
    }
}

/// The transport of a name.
pub(crate) fn transport(name: &str) -> Transport {
    let endpoint: Endpoint = name.parse().expect("a transport of the list");
    endpoint.transport
}

/// Names the cases of a program and makes its `main`, which runs each over all transports.
macro_rules! for_each_transport {
    ($($name:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::rig::run_over_all(&[
                $((stringify!($name), $name as $crate::rig::PeerCase)),+
            ])
        }
    };
}
#[allow(unused_imports, reason = "each program takes what it needs")]
pub(crate) use for_each_transport;

/// Names the cases of a program and makes its `main`, which runs each against both servers.
macro_rules! against_both {
    ($($name:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::rig::run(&[$((stringify!($name), $name as $crate::rig::Case)),+])
        }
    };
}
#[allow(unused_imports, reason = "each program takes what it needs")]
pub(crate) use against_both;

/// Runs the cases.
pub(crate) fn run(cases: &[(&str, Case)]) -> ExitCode {
    let mut tests = Vec::new();
    for (name, case) in cases {
        for subject in subjects() {
            tests.push(Test::new(&title(name, subject), move || case(subject)));
        }
    }
    harness::run(&tests)
}

/// Runs the cases over every transport.
pub(crate) fn run_over_all(cases: &[(&str, PeerCase)]) -> ExitCode {
    let mut tests = Vec::new();
    for (name, case) in cases {
        for peer in subjects().into_iter().flat_map(Peer::of) {
            let title = format!("{}_over_{}", title(name, peer.subject), peer.transport);
            tests.push(Test::new(&title, move || case(peer)));
        }
    }
    harness::run(&tests)
}

fn title(name: &str, subject: Subject) -> String {
    match subject {
        Subject::Smbeam => format!("{name}_with_smbeam"),
        Subject::Samba => format!("{name}_with_samba"),
    }
}

fn subjects() -> Vec<Subject> {
    match env::var_os("SMBEAM_SUBJECT") {
        Some(_) => vec![Subject::chosen()],
        None => vec![Subject::Smbeam, Subject::Samba],
    }
}

/// A server that runs, and the folder that it shares.
pub(crate) struct Rig {
    pub(crate) server: Server,
    transport: Transport,
    share: PathBuf,
    scratch: Scratch,
}

impl Rig {
    /// A server as it is without further words.
    pub(crate) fn new(peer: impl Into<Peer>) -> Result<Rig> {
        Rig::with(peer, |_| ())
    }

    /// A server whose plan is changed before it starts.
    pub(crate) fn with(peer: impl Into<Peer>, change: impl FnOnce(&mut Plan)) -> Result<Rig> {
        let scratch = Scratch::new("client")?;
        let share = scratch.open_folder("share")?;
        Rig::sharing(peer, scratch, &share, change)
    }

    /// A server of a folder that is there.
    pub(crate) fn sharing(
        peer: impl Into<Peer>,
        scratch: Scratch,
        share: &Path,
        change: impl FnOnce(&mut Plan),
    ) -> Result<Rig> {
        let Peer { subject, transport } = peer.into();
        let lab = match Lab::find() {
            Ok(lab) => Some(lab),
            Err(missing) if subject == Subject::Samba => return Err(missing.into()),
            Err(_) => None,
        };
        let mut plan = Plan::sharing(share);
        change(&mut plan);
        let server = Server::start_as(subject, lab.as_ref(), None, plan)?;
        Ok(Rig {
            server,
            transport,
            share: share.to_path_buf(),
            scratch,
        })
    }

    /// How the server is reached.
    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint_of(self.transport)
    }

    /// The same by another transport.
    pub(crate) fn endpoint_of(&self, transport: Transport) -> Endpoint {
        let port = self.server.address(transport.name()).port();
        Endpoint { transport, port }
    }

    /// Logs alice in, over the transport of the rig, with `options` otherwise.
    pub(crate) fn connect(&self, options: Options) -> Result<Session, Error> {
        self.connect_as(options, ALICE)
    }

    /// The same for somebody else.
    pub(crate) fn connect_as(&self, mut options: Options, user: User) -> Result<Session, Error> {
        options.transports = self.endpoint().into();
        log_in(options, None, user)
    }

    /// A login of alice's, as a client has it that is told nothing.
    pub(crate) fn session(&self) -> Result<Session, Error> {
        self.connect(Options::default())
    }

    /// The share, in a login of its own.
    pub(crate) fn share(&self) -> Result<Share, Error> {
        self.session()?.share(SHARE).wait()
    }

    /// Where a file of the share lies.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.share.join(name)
    }

    /// A folder beside the share.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Fails unless the file of the share has these bytes on disk.
    pub(crate) fn assert_holds(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let found = fs::read(self.path(name))?;
        ensure!(
            found == bytes,
            "`{name}` has {} other bytes on disk than the {} that were sent",
            found.len(),
            bytes.len()
        );
        Ok(())
    }
}

/// Logs a user in on a port of loopback.
pub(crate) fn connect(port: u16, options: Options, user: User) -> Result<Session, Error> {
    log_in(options, Some(port), user)
}

/// Logs a user in on loopback, as the options say, whatever certificate the server has: who is
/// believed is tested elsewhere.
pub(crate) fn log_in(
    mut options: Options,
    port: Option<u16>,
    user: User,
) -> Result<Session, Error> {
    options.tls.trust = Trust::Anything;
    options.rdma = RdmaChoice::Emulated(rdma_folder());
    let credentials = Credentials::new(None, user.name, user.password);
    let host = Ipv4Addr::LOCALHOST.to_string();
    let rdma = RdmaChoice::Emulated(rdma_folder());
    let client = Client::new(Options { rdma, ..options })?;
    client.connect(&host, port, &credentials).wait()
}

/// Bytes that tell where they are from.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::new(seed).fill(&mut bytes);
    bytes
}

/// Fails unless it failed, and with this word of the server.
pub(crate) fn assert_status<T>(result: Result<T, Error>, wanted: Status) -> Result<()> {
    match result {
        Ok(_) => bail!("it worked, where {wanted:?} was due"),
        Err(error) => {
            let has_it = matches!(error, Error::Status { status, .. } if status == wanted);
            ensure!(has_it, "{wanted:?} was due: {error} ({error:?})");
            Ok(())
        }
    }
}

/// Waits for a future, but not for ever.
pub(crate) fn soon<F: Future>(what: &str, future: F) -> Result<F::Output> {
    match within(PATIENCE, future) {
        Some(output) => Ok(output),
        None => bail!("waited {PATIENCE:?} in vain for {what}"),
    }
}

/// Waits for a future; none: it is not done after so long.
pub(crate) fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let end = Instant::now() + limit;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

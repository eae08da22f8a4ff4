//! A server with one share, and our own client library in front of it.
//!
//! Each case of these programs is run against smbeam, over all [`TRANSPORTS`], and against the
//! lab's smbd, over TCP: a behavior that smbd shares is no misunderstanding of ours.
//! `SMBEAM_SUBJECT` keeps to one of them; without a lab the cases against smbd are skipped.

pub(crate) mod proxy;

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use proxy::Proxy;
use serde_json::Value;
use smbeam_client::tls::Trust;
use smbeam_client::transfer::{TransferOptions, download, upload};
use smbeam_client::{
    Client, Credentials, Endpoint, Error, OpenOptions, Options, RdmaChoice, Session, Share, Status,
    Transport, Wait,
};
use smbeam_tests::direct::port::rdma_directory;
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Lab;
use smbeam_tests::random::Random;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject, TRANSPORTS, User};
use smbeam_tests::{client, wait};

/// The share that every rig has.
pub(crate) const SHARE: &str = "data";
/// Time without a message after which the client sends an echo over QUIC. After the same time
/// without an answer the connection is lost.
const QUIC_SILENCE: Duration = Duration::from_secs(4);
/// Time limit of one step of a case.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A case. Its argument is the server and the transport.
pub(crate) type Case = fn(Peer) -> Result<()>;

/// A server, and how it is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) subject: Subject,
    pub(crate) transport: Transport,
}

impl Peer {
    /// All there are of a server.
    fn of(subject: Subject) -> Vec<Self> {
        let transports = TRANSPORTS.iter().map(|name| transport(name));
        let mut peers = transports.map(|transport| Self { subject, transport });
        match subject {
            Subject::Smbeam => peers.collect(),
            Subject::Samba => peers.next().into_iter().collect(),
        }
    }

    /// The amount of work: a long case does the full amount over TCP only.
    pub(crate) fn amount<T>(self, over_tcp: T, over_others: T) -> T {
        match self.transport {
            Transport::Tcp => over_tcp,
            _ => over_others,
        }
    }
}

/// The transport of a name.
pub(crate) fn transport(name: &str) -> Transport {
    let endpoint: Endpoint = name.parse().expect("a transport of the list");
    endpoint.transport
}

/// Names the cases of a module, each of which exists once per peer.
macro_rules! for_each_transport {
    ($($name:ident),+ $(,)?) => {
        pub(crate) fn tests() -> Vec<smbeam_tests::harness::Test> {
            $crate::rig::tests(&[$((stringify!($name), $name as $crate::rig::Case)),+])
        }
    };
}
pub(crate) use for_each_transport;

/// The cases against each peer.
pub(crate) fn tests(cases: &[(&str, Case)]) -> Vec<Test> {
    let mut tests = Vec::new();
    for &(name, case) in cases {
        for peer in subjects().into_iter().flat_map(Peer::of) {
            let title = title(name, peer.subject);
            tests.push(Test::over(&title, peer.transport.name(), move || {
                case(peer)
            }));
        }
    }
    tests
}

/// The cases against each server, over TCP alone.
pub(crate) fn tests_over_tcp(cases: &[(&str, Case)]) -> Vec<Test> {
    let mut tests = Vec::new();
    for &(name, case) in cases {
        for subject in subjects() {
            let transport = Transport::Tcp;
            let peer = Peer { subject, transport };
            let title = title(name, subject);
            tests.push(Test::over(&title, transport.name(), move || case(peer)));
        }
    }
    tests
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

/// A server that runs, and the directory that it shares.
pub(crate) struct Rig {
    pub(crate) server: Server,
    transport: Transport,
    share: PathBuf,
    scratch: Scratch,
}

impl Rig {
    /// A server with the default plan.
    pub(crate) fn new(peer: Peer) -> Result<Rig> {
        Rig::with(peer, |_| ())
    }

    /// A server with a plan that `change` has changed.
    pub(crate) fn with(peer: Peer, change: impl FnOnce(&mut Plan)) -> Result<Rig> {
        let scratch = Scratch::new("client")?;
        let share = scratch.open_directory("share")?;
        Rig::sharing(peer, scratch, &share, change)
    }

    /// A server of an existing directory.
    pub(crate) fn sharing(
        peer: Peer,
        scratch: Scratch,
        share: &Path,
        change: impl FnOnce(&mut Plan),
    ) -> Result<Rig> {
        let Peer { subject, transport } = peer;
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

    /// The same for another user.
    pub(crate) fn connect_as(&self, options: Options, user: User) -> Result<Session, Error> {
        log_in(by(self.endpoint(), options), None, user)
    }

    /// A login of alice's with the default options.
    pub(crate) fn session(&self) -> Result<Session, Error> {
        self.connect(Options::default())
    }

    /// The share, in a separate login.
    pub(crate) fn share(&self) -> Result<Share, Error> {
        self.session()?.share(SHARE).wait()
    }

    /// The path of a file of the share.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.share.join(name)
    }

    /// A directory beside the share.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Fails unless the file of the share has these bytes on disk.
    pub(crate) fn assert_holds(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let found = fs::read(self.path(name))?;
        let differs = found
            .iter()
            .zip(bytes)
            .position(|(one, other)| one != other);
        ensure!(
            found.len() == bytes.len() && differs.is_none(),
            "`{name}` has {} bytes on disk and {} were sent; they differ at {differs:?}",
            found.len(),
            bytes.len()
        );
        Ok(())
    }

    /// Moves bytes to a file and back, each way as the transfer likes it.
    pub(crate) fn round_trip(&self, share: &Share, bytes: &[u8]) -> Result<()> {
        let options = TransferOptions::default();
        let total = 0..bytes.len() as u64;
        let new = OpenOptions::new().write(true).create(true).truncate(true);
        let file = share.open("file", &new).wait()?;
        let (mut source, mut reported) = (bytes, 0);
        let mut progress = |bytes| reported += bytes;
        let sent = upload(&file, total.clone(), &mut source, &options, &mut progress).wait()?;
        file.close().wait()?;
        ensure!(sent == total.end && reported == total.end);
        self.assert_holds("file", bytes)?;
        let file = share.open("file", &OpenOptions::new().read(true)).wait()?;
        let mut back = vec![0; bytes.len()];
        let mut sink = |offset: u64, piece: &[u8]| {
            let offset = usize::try_from(offset).expect("it fits the file");
            back[offset..offset + piece.len()].copy_from_slice(piece);
            Ok(())
        };
        let received = download(&file, total.clone(), &mut sink, &options, &mut |_| {}).wait()?;
        file.close().wait()?;
        ensure!(received == total.end && back == bytes);
        Ok(())
    }
}

/// The output of `smbeam status --json`, with the connections of all workers. A worker of a busy
/// machine may report late.
pub(crate) fn server_status(server: &Server) -> Result<Value> {
    let socket = server.control().display().to_string();
    let client = client::Client::of("nowhere")?;
    let mut status = Value::Null;
    wait::until("the reports of all workers", TIME_LIMIT, || {
        let output = client.try_run(&["status", "--json", "--socket", &socket]);
        let output = output.ok().filter(|output| output.code == Some(0));
        let described = output.and_then(|output| serde_json::from_str(&output.text).ok());
        status = described.unwrap_or_default();
        status["left_out"]["workers"] == 0
    })
    .with_context(|| format!("{status}"))?;
    Ok(status)
}

/// Logs alice in through a relay, with `options` otherwise.
pub(crate) fn connect_through(proxy: &Proxy, options: Options) -> Result<Session, Error> {
    log_in(by(proxy.endpoint(), options), None, ALICE)
}

/// The options of a session at that endpoint. QUIC reports the end of a connection only after half
/// a minute: echoes find it earlier.
pub(crate) fn by(endpoint: Endpoint, mut options: Options) -> Options {
    options.transports = endpoint.into();
    if endpoint.transport == Transport::Quic {
        options.echo_interval = QUIC_SILENCE;
    }
    options
}

/// Logs a user in on loopback with the options. It accepts any certificate: other tests cover the
/// verification.
pub(crate) fn log_in(options: Options, port: Option<u16>, user: User) -> Result<Session, Error> {
    let client = loopback_client(options)?;
    log_in_by(&client, port, user)
}

/// A client for [`log_in_by`].
pub(crate) fn loopback_client(mut options: Options) -> Result<Client, Error> {
    options.tls.trust = Trust::Anything;
    options.rdma = RdmaChoice::Emulated(rdma_directory());
    Client::new(options)
}

/// As [`log_in`], by an existing client.
pub(crate) fn log_in_by(client: &Client, port: Option<u16>, user: User) -> Result<Session, Error> {
    let credentials = Credentials::new(None, user.name, user.password);
    let host = Ipv4Addr::LOCALHOST.to_string();
    client.connect(&host, port, &credentials).wait()
}

/// Random bytes of a seed.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::new(seed).fill(&mut bytes);
    bytes
}

/// Fails unless the result is an error with this status of the server.
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
    match within(TIME_LIMIT, future) {
        Some(output) => Ok(output),
        None => bail!("waited {TIME_LIMIT:?} in vain for {what}"),
    }
}

/// Waits for a future; none: it is not ready after `limit`.
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

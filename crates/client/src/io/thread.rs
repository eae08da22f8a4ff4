//! One I/O thread: a ring, its mailbox, and the channels that live on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use net::quic::Settings as QuicSettings;
use net::{TcpOptions, Transport};
use proto::client::{Config, RequestId, Role};
use proto::time;
use proto::time::Now;
use ring::{Handle, Io, PoolConfig, Receiver, Runtime, Sender, Signal, mailbox};

use crate::error::ConnectCause;
use crate::io::call::Call;
use crate::io::channel::{self, Channel};
use crate::io::dispatch::{ChannelKey, Dispatch};
use crate::io::quic::Tls;
use crate::io::slot::Filler;
use crate::io::smbdirect::Rdma;

/// How long what is under way may take when the client is closed.
const GRACE: Duration = Duration::from_secs(2);

/// What a thread is told.
pub(crate) enum Message {
    /// Open a channel.
    Open(Box<Open>),
    /// Send a request.
    Call(ChannelKey, Box<Call>),
    /// Nobody waits for an answer any more.
    Cancel(ChannelKey, RequestId),
    /// End a channel once what is under way is done.
    Close(ChannelKey),
    /// Say when nothing is under way any more. The process is about to end: end the channels that
    /// the kernel would not.
    Settle(Filler<()>),
    /// End all channels, and the thread.
    Stop,
}

/// A channel to be opened.
pub(crate) struct Open {
    pub(crate) target: Target,
    pub(crate) role: Role,
    /// Told when it carries the session, or why not.
    pub(crate) ready: Filler<Result<(), ConnectCause>>,
}

/// Where a channel leads, and for whom.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) tcp: TcpOptions,
    pub(crate) quic: QuicSettings,
    pub(crate) connect_timeout: Duration,
    pub(crate) config: Arc<Config>,
    pub(crate) credentials: Arc<auth::Credentials>,
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) tls: Arc<Tls>,
    pub(crate) rdma: Arc<Rdma>,
}

/// A thread that runs, from outside.
pub(crate) struct IoThread {
    pub(crate) sender: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl IoThread {
    /// Starts one and waits until its ring is there.
    pub(crate) fn start(io: Io) -> io::Result<Self> {
        let (sender, receiver) = mailbox(None);
        let own = sender.clone();
        let (started, is_started) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("smbeam-client".to_owned())
            .spawn(move || run(io, own, receiver, &started))?;
        match is_started.recv() {
            Ok(Ok(())) => Ok(Self {
                sender,
                thread: Some(thread),
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the thread ended at once")),
        }
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Stop);
        let Some(thread) = self.thread.take() else {
            return;
        };
        // The last handle may be dropped by a future that this very thread has woken.
        if thread.thread().id() != std::thread::current().id() {
            // A panic was logged where it happened.
            let _ = thread.join();
        }
    }
}

fn run(
    io: Io,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    started: &mpsc::Sender<io::Result<()>>,
) {
    let config = ring::Config {
        io,
        // A thread has few channels, and reads no files.
        buffers: PoolConfig {
            registered: false,
            chunks: 64,
            ..PoolConfig::default()
        },
        ..ring::Config::default()
    };
    let runtime = match Runtime::new(&config) {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let thread = Rc::new(Thread {
        handle: runtime.handle(),
        sender,
        channels: RefCell::default(),
        left: Signal::default(),
        started: Instant::now(),
    });
    let _ = started.send(Ok(()));
    runtime.block_on(thread.serve(receiver));
}

/// A thread that runs, from inside.
pub(crate) struct Thread {
    pub(crate) handle: Handle,
    pub(crate) sender: Sender<Message>,
    channels: RefCell<BTreeMap<ChannelKey, Rc<Channel>>>,
    /// A channel ended.
    left: Signal,
    /// The clock of the core starts here.
    started: Instant,
}

impl Thread {
    async fn serve(self: Rc<Self>, mut mailbox: Receiver<Message>) {
        while let Some(message) = mailbox.recv().await {
            match message {
                Message::Open(open) => self.open(*open, Duration::ZERO),
                Message::Call(key, call) => self.call(key, call),
                Message::Cancel(key, id) => {
                    if let Some(channel) = self.channel(key) {
                        channel.cancel(id);
                    }
                }
                Message::Close(key) => {
                    if let Some(channel) = self.channel(key) {
                        self.handle.spawn(channel.close(GRACE));
                    }
                }
                Message::Settle(settled) => {
                    self.handle.spawn(Rc::clone(&self).settle(settled));
                }
                Message::Stop => break,
            }
        }
        self.end_all(|_| true).await;
    }

    /// Waits until nothing is under way, and ends what has to be ended from here.
    async fn settle(self: Rc<Self>, settled: Filler<()>) {
        let idle = async {
            for channel in self.chosen(Channel::ends_with_process) {
                channel.idle().await;
            }
        };
        let _ = self.handle.timeout(GRACE, idle).await;
        self.end_all(|channel| !channel.ends_with_process()).await;
        // Nobody waits any more, then.
        let _ = settled.fill(());
    }

    /// Ends channels once what is under way is done, and waits until they are gone.
    async fn end_all(&self, of: fn(&Channel) -> bool) {
        for channel in self.chosen(of) {
            self.handle.spawn(channel.close(GRACE));
        }
        let gone = async {
            while !self.chosen(of).is_empty() {
                self.left.lower();
                self.left.raised().await;
            }
        };
        if self.handle.timeout(2 * GRACE, gone).await.is_err() {
            let left = self.chosen(of).len();
            tracing::warn!(left, "channels did not end in time");
        }
    }

    fn chosen(&self, of: fn(&Channel) -> bool) -> Vec<Rc<Channel>> {
        let channels = self.channels.borrow();
        let chosen = channels.values().filter(|channel| of(channel));
        chosen.cloned().collect()
    }

    /// Opens a channel after a while.
    pub(crate) fn open(self: &Rc<Self>, open: Open, after: Duration) {
        self.handle
            .spawn(channel::run(Rc::clone(self), open, after));
    }

    fn call(&self, key: ChannelKey, call: Box<Call>) {
        match self.channel(key) {
            Some(channel) => channel.call(call),
            None => {
                // It ended while the request was in the mailbox.
                let dispatch = Arc::clone(&call.dispatch);
                let reason = Arc::from("the connection was closed");
                dispatch.lost(call, proto::client::Fate::Unsent, &reason);
            }
        }
    }

    fn channel(&self, key: ChannelKey) -> Option<Rc<Channel>> {
        self.channels.borrow().get(&key).cloned()
    }

    pub(crate) fn enter(&self, key: ChannelKey, channel: Rc<Channel>) {
        self.channels.borrow_mut().insert(key, channel);
    }

    pub(crate) fn leave(&self, key: ChannelKey) {
        self.channels.borrow_mut().remove(&key);
        self.left.raise();
    }

    /// The time, as the core has it.
    pub(crate) fn now(&self) -> Now {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Now {
            instant: time::Instant(self.started.elapsed()),
            wall: wire::FileTime::from_unix(seconds, since.subsec_nanos()),
        }
    }
}

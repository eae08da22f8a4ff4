//! An I/O thread: a ring, its mailbox, and its channels.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use proto::client::Fate;
use ring::{Io, PoolConfig, Receiver, Runtime, Sender, Signal, mailbox};

use crate::io::channel::{self, Channel, Next};
use crate::io::context::ThreadContext;
use crate::io::dispatch::{ChannelKey, ChannelMessage};
use crate::io::message::{Message, Open, Target};
use crate::io::resume;
use crate::io::slot::Filler;

/// Time limit of pending requests when the client is closed.
const GRACE: Duration = Duration::from_secs(2);

/// The handle of an I/O thread.
pub(crate) struct IoThread {
    pub(crate) sender: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl IoThread {
    /// Starts a thread and waits for its ring.
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
            Err(_) => Err(io::Error::other("the I/O thread ended at its start")),
        }
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Stop);
        let Some(thread) = self.thread.take() else {
            return;
        };
        // A future that this thread has woken may drop the last handle.
        if thread.thread().id() != std::thread::current().id() {
            // The panic hook has logged a panic.
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
        // A thread has few channels, and does not read files.
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
        context: Rc::new(ThreadContext::new(runtime.handle(), sender)),
        channels: RefCell::default(),
        left: Signal::default(),
    });
    let _ = started.send(Ok(()));
    runtime.block_on(thread.serve(receiver));
}

/// The state of an I/O thread.
struct Thread {
    context: Rc<ThreadContext>,
    channels: RefCell<BTreeMap<ChannelKey, Rc<Channel>>>,
    /// A channel ended.
    left: Signal,
}

impl Thread {
    async fn serve(self: Rc<Self>, mut mailbox: Receiver<Message>) {
        while let Some(message) = mailbox.recv().await {
            match message {
                Message::Open(open) => self.open(*open),
                Message::Channel(key, message) => self.forward(key, message),
                Message::Settle(settled) => {
                    self.context.handle.spawn(Rc::clone(&self).settle(settled));
                }
                Message::Pause(time, passed) => self.pause(time, passed),
                Message::Stop => break,
            }
        }
        self.end_all(|_| true).await;
    }

    /// Fills a slot after a time.
    fn pause(&self, time: Duration, passed: Filler<()>) {
        let handle = self.context.handle.clone();
        self.context.handle.spawn(async move {
            handle.sleep(time).await;
            let _ = passed.fill(());
        });
    }

    /// Waits until no request is pending, and ends the channels that the kernel does not end.
    async fn settle(self: Rc<Self>, settled: Filler<()>) {
        let idle = async {
            for channel in self.chosen(Channel::ends_with_process) {
                channel.idle().await;
            }
        };
        let _ = self.context.handle.timeout(GRACE, idle).await;
        self.end_all(|channel| !channel.ends_with_process()).await;
        // An error means that the caller does not wait any more.
        let _ = settled.fill(());
    }

    /// Ends channels after their pending requests, and waits until they have ended.
    async fn end_all(&self, of: fn(&Channel) -> bool) {
        for channel in self.chosen(of) {
            self.context.handle.spawn(channel.close(GRACE));
        }
        let ended = async {
            while !self.chosen(of).is_empty() {
                self.left.lower();
                self.left.raised().await;
            }
        };
        if self.context.handle.timeout(2 * GRACE, ended).await.is_err() {
            let count = self.chosen(of).len();
            tracing::warn!(count, "channels did not end in time");
        }
    }

    fn chosen(&self, of: fn(&Channel) -> bool) -> Vec<Rc<Channel>> {
        let channels = self.channels.borrow();
        let chosen = channels.values().filter(|channel| of(channel));
        chosen.cloned().collect()
    }

    /// Opens a channel, and serves it until it ends.
    fn open(self: &Rc<Self>, open: Open) {
        self.context.handle.spawn(Rc::clone(self).run(open));
    }

    /// Resumes the session of a channel that was its last one.
    fn resume(self: &Rc<Self>, target: Target) {
        let thread = Rc::clone(self);
        let open = move |open| thread.open(open);
        let handle = self.context.handle.clone();
        self.context.handle.spawn(resume::run(handle, target, open));
    }

    async fn run(self: Rc<Self>, open: Open) {
        let Some(channel) = channel::connect(&self.context, open).await else {
            return;
        };
        let key = channel.key();
        self.channels.borrow_mut().insert(key, Rc::clone(&channel));
        let leave = Leave {
            thread: &self,
            channel: &channel,
        };
        channel.serve().await;
        leave.settle();
    }

    fn forward(&self, key: ChannelKey, message: ChannelMessage) {
        match (message, self.channel(key)) {
            (ChannelMessage::Call(call), Some(channel)) => channel.call(call),
            (ChannelMessage::Call(call), None) => {
                // The channel ended while the request was in the mailbox.
                call.lost(Fate::Unsent, &Arc::from("the connection was closed"));
            }
            (ChannelMessage::Cancel(id), Some(channel)) => channel.cancel(id),
            (ChannelMessage::Close, Some(channel)) => {
                self.context.handle.spawn(channel.close(GRACE));
            }
            (ChannelMessage::Cancel(_) | ChannelMessage::Close, None) => {}
        }
    }

    fn channel(&self, key: ChannelKey) -> Option<Rc<Channel>> {
        self.channels.borrow().get(&key).cloned()
    }
}

/// Takes a channel off its thread, also where serving it panicked.
struct Leave<'a> {
    thread: &'a Rc<Thread>,
    channel: &'a Rc<Channel>,
}

impl Leave<'_> {
    /// Settles the calls of the channel, and opens another one in its place where that is of use.
    fn settle(&self) {
        match self.channel.settle() {
            Next::Nothing => {}
            Next::Replace(open) => self.thread.open(*open),
            Next::Resume(target) => self.thread.resume(*target),
        }
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.channel.end();
            self.settle();
        }
        self.thread
            .channels
            .borrow_mut()
            .remove(&self.channel.key());
        self.thread.left.raise();
    }
}

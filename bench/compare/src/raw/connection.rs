//! A connection with frames, credits and headers. Requests are sent in order.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use crypto::{SigningKey, SigningNonce};
use wire::header::{SIGNATURE, Target};
use wire::tree_connect::RequestFlags;
use wire::{Command, Flags, Header, MessageId, SessionId, Status, TreeId};
use wire::{echo, text, tree_connect};

/// Time limit for a response. A server without a response has failed.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// Credits that each request asks for until there are enough.
const CREDITS_ASKED: u16 = 128;
/// More credits than any bench needs: 16 requests of 1 MiB in flight.
const CREDITS_ENOUGH: u32 = 256;
/// Bytes per credit. [MS-SMB2] 3.1.5.2
const CREDIT_BYTES: u32 = 65_536;
/// Length of the frame header before each message, in bytes. [MS-SMB2] 2.1
const FRAME_LEN: usize = 4;
/// Capacity for several of the largest messages, in bytes.
const INBOX_BYTES: usize = 4 << 20;

/// A connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
    next_message_id: u64,
    credits: u32,
    /// The session id, 0 before the login.
    pub(crate) session_id: SessionId,
    tree_id: TreeId,
    signing_key: Option<SigningKey>,
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    /// The received bytes in the inbox that are not consumed yet.
    filled: std::ops::Range<usize>,
}

/// A response: its header and the message.
pub(crate) struct Answer<'a> {
    /// The header.
    pub(crate) header: Header,
    /// The whole message with its header.
    pub(crate) message: &'a [u8],
}

impl Connection {
    /// Connects, without sending a message.
    pub(crate) fn open(address: SocketAddrV4) -> Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_LIMIT))?;
        stream.set_write_timeout(Some(SILENCE_LIMIT))?;
        Ok(Connection {
            stream,
            next_message_id: 0,
            credits: 1,
            session_id: SessionId(0),
            tree_id: TreeId(0),
            signing_key: None,
            outbox: Vec::new(),
            // The buffer grows with the first response, so most of a thousand connections stay
            // small.
            inbox: Vec::new(),
            filled: 0..0,
        })
    }

    /// Sets the key for the request that must be signed. [MS-SMB2] 3.3.5.7: a TREE_CONNECT of
    /// dialect 3.1.1
    pub(crate) fn sign_with(&mut self, key: SigningKey) {
        self.signing_key = Some(key);
    }

    /// Connects to a share, and requests credits until there are enough for every bench.
    pub(crate) fn enter(&mut self, path: &str) -> Result<()> {
        let path = text::utf16(path);
        let request = tree_connect::Request {
            flags: RequestFlags::NONE,
            path: wire::Utf16(&path),
        };
        let start = self.outbox.len();
        self.put(Command::TREE_CONNECT, 0, |message| request.encode(message))?;
        self.sign_last(start)?;
        self.flush()?;
        let answer = self.receive()?;
        expect(&answer, Status::SUCCESS)?;
        let tree_id = answer.header.tree_id();
        self.tree_id = tree_id.context("the response has no tree id")?;
        while self.credits < CREDITS_ENOUGH {
            let before = self.credits;
            self.echo()?;
            ensure!(
                self.credits > before,
                "the server stops at {before} credits"
            );
        }
        Ok(())
    }

    /// Another handle of the stream, to shut it down from another thread.
    pub(crate) fn stream(&self) -> Result<TcpStream> {
        Ok(self.stream.try_clone()?)
    }

    /// Sends ECHO and waits for the response.
    pub(crate) fn echo(&mut self) -> Result<()> {
        self.put(Command::ECHO, 0, |message| echo::Request.encode(message))?;
        self.flush()?;
        expect(&self.receive()?, Status::SUCCESS)
    }

    /// Sends one request and waits for its response. Fails if the response has another status.
    pub(crate) fn ask(
        &mut self,
        command: Command,
        payload: u32,
        status: Status,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<&[u8]> {
        self.put(command, payload, body)?;
        self.flush()?;
        let answer = self.receive()?;
        expect(&answer, status)?;
        Ok(answer.message)
    }

    /// The last queued message, for the preauth hash.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.outbox[FRAME_LEN..]
    }

    /// Queues a request. `payload` is the larger of its data and the data that it requests, in
    /// bytes.
    pub(crate) fn put(
        &mut self,
        command: Command,
        payload: u32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<MessageId> {
        let charge = payload.div_ceil(CREDIT_BYTES).max(1);
        ensure!(self.credits >= charge, "{} credits are left", self.credits);
        self.credits -= charge;
        let message_id = MessageId(self.next_message_id);
        self.next_message_id += u64::from(charge);
        let charge = u16::try_from(charge)?;
        let asked = match self.credits < CREDITS_ENOUGH {
            true => CREDITS_ASKED.max(charge),
            false => charge,
        };
        let header = Header {
            credit_charge: charge,
            status: Status::SUCCESS,
            command,
            credits: asked,
            flags: Flags::NONE,
            next_command: 0,
            message_id,
            target: Target::Sync {
                process_id: 0xFEFF,
                tree_id: self.tree_id,
            },
            session_id: self.session_id,
            signature: [0; 16],
        };
        let mut message = Vec::with_capacity(256);
        header.encode(&mut message);
        body(&mut message);
        self.outbox
            .extend(u32::try_from(message.len())?.to_be_bytes());
        self.outbox.extend(message);
        Ok(message_id)
    }

    fn sign_last(&mut self, start: usize) -> Result<()> {
        let message = &mut self.outbox[start + FRAME_LEN..];
        let mut header = Header::decode(message)?;
        header.flags |= Flags::SIGNED;
        let mut head = Vec::new();
        header.encode(&mut head);
        message[..head.len()].copy_from_slice(&head);
        let nonce = SigningNonce {
            message_id: header.message_id.0,
            from_server: false,
            is_cancel: false,
        };
        let key = self.signing_key.as_ref().context("logged in")?;
        let signature = key.sign(nonce, &[message]);
        message[SIGNATURE].copy_from_slice(&signature);
        Ok(())
    }

    /// Sends the queued requests.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if !self.outbox.is_empty() {
            self.stream.write_all(&self.outbox)?;
            self.outbox.clear();
        }
        Ok(())
    }

    /// Waits for the next final response. Interim responses are skipped.
    pub(crate) fn receive(&mut self) -> Result<Answer<'_>> {
        loop {
            let message = self.next_message()?;
            let header = Header::decode(&self.inbox[message.clone()])?;
            self.credits += u32::from(header.credits);
            if header.status != Status::PENDING {
                let message = &self.inbox[message];
                return Ok(Answer { header, message });
            }
        }
    }

    /// Whether a response is available without waiting.
    pub(crate) fn has_answer(&self) -> bool {
        self.frame().is_some()
    }

    /// The range of the first complete message in the inbox.
    fn frame(&self) -> Option<std::ops::Range<usize>> {
        let filled = &self.inbox[self.filled.clone()];
        let (head, rest) = filled.split_first_chunk::<FRAME_LEN>()?;
        let length = u32::from_be_bytes(*head) as usize;
        let start = self.filled.start + FRAME_LEN;
        (rest.len() >= length).then_some(start..start + length)
    }

    fn next_message(&mut self) -> Result<std::ops::Range<usize>> {
        loop {
            if let Some(message) = self.frame() {
                self.filled.start = message.end;
                return Ok(message);
            }
            self.fill()?;
        }
    }

    /// Receives at least one more byte.
    fn fill(&mut self) -> Result<()> {
        if self.filled.is_empty() {
            self.filled = 0..0;
        } else if self.inbox.len() - self.filled.end < self.inbox.len() / 2 {
            self.inbox.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        if self.filled.end == self.inbox.len() {
            let longer = (2 * self.inbox.len()).clamp(4096, INBOX_BYTES);
            ensure!(
                longer > self.inbox.len(),
                "a message of more than {INBOX_BYTES} bytes"
            );
            self.inbox.resize(longer, 0);
        }
        let count = self.stream.read(&mut self.inbox[self.filled.end..])?;
        ensure!(count > 0, "the server closed the connection");
        self.filled.end += count;
        Ok(())
    }
}

/// Fails unless `answer` has the given status.
pub(crate) fn expect(answer: &Answer<'_>, status: Status) -> Result<()> {
    if answer.header.status != status {
        let Header {
            command, status, ..
        } = answer.header;
        bail!("{command:?}: the response is {status:?}");
    }
    Ok(())
}

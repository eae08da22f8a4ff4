//! SMB 3.0 on a connection of SMB Direct, or on another: enough to log in and to name memory in
//! READ and WRITE.
//!
//! In these dialects nothing has to be signed, so that every byte is the test's own.

use std::net::SocketAddrV4;

use anyhow::{Context as _, Result, bail, ensure};

use crate::direct::{ANSWER_LIMIT, Direct, Heard};
use crate::ntlm;
use crate::raw::{self, Raw, Reaction, frame, session_setup_body};
use crate::subject::{ALICE, Server};

/// SMB 3.0
pub const SMB_3_0: u16 = 0x0300;
/// SMB 3.0.2
pub const SMB_3_0_2: u16 = 0x0302;

/// The status of an interim response.
const PENDING: u32 = 0x0103;
const READ: u16 = 8;
const WRITE: u16 = 9;

/// A piece of memory: Offset, Token, Length. \[MS-SMBD\] 2.2.3.1
pub type Piece = (u64, u32, u32);

/// The transport of the messages.
#[derive(Debug)]
pub enum Pipe {
    /// SMB Direct.
    Direct(Direct),
    /// Direct TCP.
    Tcp(Raw),
}

/// A session with one open file.
#[derive(Debug)]
pub struct Session {
    /// The transport of the session.
    pub pipe: Pipe,
    message_id: u64,
    session_id: u64,
    tree_id: u32,
    file: [u8; 16],
}

/// The fields of a READ or WRITE that describe memory.
#[derive(Clone, Debug)]
pub struct Named {
    /// Channel
    pub channel: u32,
    /// Length of a READ, RemainingBytes of a WRITE.
    pub length: u32,
    /// ReadChannelInfoOffset, WriteChannelInfoOffset
    pub info_offset: u16,
    /// ReadChannelInfoLength, WriteChannelInfoLength
    pub info_length: u16,
    /// The channel information.
    pub info: Vec<u8>,
}

impl Named {
    /// A valid description of `length` bytes in these pieces.
    pub fn new(length: u32, pieces: &[Piece]) -> Self {
        let mut info = Vec::new();
        for (offset, token, length) in pieces {
            info.extend(offset.to_le_bytes());
            info.extend(token.to_le_bytes());
            info.extend(length.to_le_bytes());
        }
        Self {
            channel: 1,
            length,
            info_offset: 112,
            info_length: u16::try_from(info.len()).unwrap_or(u16::MAX),
            info,
        }
    }
}

impl Session {
    /// Comes by SMB Direct and opens `name`, which must be there.
    pub fn direct(server: &Server, dialect: u16, name: &str) -> Result<Self> {
        let pipe = Pipe::Direct(Direct::negotiated(server)?);
        Self::log_in(pipe, server.tcp, dialect, name)
    }

    /// Comes by TCP and opens `name`, which must be there.
    pub fn tcp(server: &Server, dialect: u16, name: &str) -> Result<Self> {
        let pipe = Pipe::Tcp(Raw::connect(server.tcp)?);
        Self::log_in(pipe, server.tcp, dialect, name)
    }

    /// Logs in on a negotiated connection and opens `name`, which must exist.
    pub fn log_in(pipe: Pipe, address: SocketAddrV4, dialect: u16, name: &str) -> Result<Self> {
        let mut session = Self {
            pipe,
            message_id: 0,
            session_id: 0,
            tree_id: 0,
            file: [0; 16],
        };
        let mut body = vec![36, 0, 1, 0, 1, 0, 0, 0, 0x7f, 0, 0, 0];
        body.extend_from_slice(b"smbeam-test-guid");
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&dialect.to_le_bytes());
        session.call(0, &body)?.expect(0, "NEGOTIATE")?;
        let challenge = session.set_up(&ntlm::negotiate())?;
        challenge.expect(0xc000_0016, "the first SESSION_SETUP")?;
        session.session_id = u64::from_le_bytes(challenge.array(40)?);
        let token = ntlm::authenticate(&challenge.0, ALICE.name, ALICE.password)?;
        session.set_up(&token)?.expect(0, "SESSION_SETUP")?;
        session.enter(&format!(r"\\{}\data", address.ip()))?;
        session.open(name)?;
        Ok(session)
    }

    /// Connects to a share, for all later requests. Returns the previous tree.
    pub fn enter(&mut self, path: &str) -> Result<u32> {
        let path = utf16(path);
        let mut body = vec![9, 0, 0, 0, 72, 0];
        body.extend_from_slice(&u16::try_from(path.len())?.to_le_bytes());
        body.extend_from_slice(&path);
        let entered = self.call(3, &body)?;
        entered.expect(0, "TREE_CONNECT")?;
        let tree = u32::from_le_bytes(entered.array(36)?);
        Ok(std::mem::replace(&mut self.tree_id, tree))
    }

    /// Returns to the tree of a share. Returns the previous tree.
    pub fn return_to(&mut self, tree: u32) -> u32 {
        std::mem::replace(&mut self.tree_id, tree)
    }

    fn set_up(&mut self, token: &[u8]) -> Result<Answer> {
        let body = session_setup_body(88, u16::try_from(token.len())?, token);
        self.call(raw::command::SESSION_SETUP, &body)
    }

    /// Opens an existing file for reading and writing. [MS-SMB2] 2.2.13
    fn open(&mut self, name: &str) -> Result<()> {
        const ACCESS: u32 = 0x0012_019f;
        let name = utf16(name);
        let mut body = vec![57, 0, 0, 0, 2, 0, 0, 0];
        body.extend_from_slice(&[0; 16]);
        for number in [ACCESS, 0, 7, 1, 0] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        body.extend_from_slice(&120_u16.to_le_bytes());
        body.extend_from_slice(&u16::try_from(name.len())?.to_le_bytes());
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&name);
        let opened = self.call(5, &body)?;
        opened.expect(0, "CREATE")?;
        self.file = opened.array(128)?;
        Ok(())
    }

    /// The request to read the file's start into memory. [MS-SMB2] 2.2.19
    pub fn read_body(&self, named: &Named) -> Vec<u8> {
        let mut body = vec![49, 0, 80, 0];
        body.extend_from_slice(&named.length.to_le_bytes());
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&self.file);
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&named.channel.to_le_bytes());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&named.info_offset.to_le_bytes());
        body.extend_from_slice(&named.info_length.to_le_bytes());
        body.extend_from_slice(&named.info);
        body.resize(body.len().max(49), 0);
        body
    }

    /// The request to write memory to the file's start. [MS-SMB2] 2.2.21
    pub fn write_body(&self, named: &Named) -> Vec<u8> {
        let mut body = vec![49, 0, 0, 0];
        body.extend_from_slice(&[0; 12]);
        body.extend_from_slice(&self.file);
        body.extend_from_slice(&named.channel.to_le_bytes());
        body.extend_from_slice(&named.length.to_le_bytes());
        body.extend_from_slice(&named.info_offset.to_le_bytes());
        body.extend_from_slice(&named.info_length.to_le_bytes());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&named.info);
        body.resize(body.len().max(49), 0);
        body
    }

    /// The request to read a range of the file, paid for.
    pub fn read_at(&mut self, offset: u64, length: u32) -> Vec<u8> {
        let named = Named {
            channel: 0,
            length,
            info_offset: 0,
            info_length: 0,
            info: Vec::new(),
        };
        let mut body = self.read_body(&named);
        body[8..16].copy_from_slice(&offset.to_le_bytes());
        self.charged(READ, &body, length)
    }

    /// The request to write these bytes to the file, paid for.
    pub fn write_at(&mut self, offset: u64, data: &[u8]) -> Result<Vec<u8>> {
        let length = u32::try_from(data.len())?;
        let mut body = vec![49, 0, 112, 0];
        body.extend_from_slice(&length.to_le_bytes());
        body.extend_from_slice(&offset.to_le_bytes());
        body.extend_from_slice(&self.file);
        body.extend_from_slice(&[0; 16]);
        body.extend_from_slice(data);
        Ok(self.charged(WRITE, &body, length))
    }

    /// A request with the credit charge of a payload of `bytes`. [MS-SMB2] 3.2.4.1.5
    fn charged(&mut self, command: u16, body: &[u8], bytes: u32) -> Vec<u8> {
        let charge = u16::try_from(bytes.div_ceil(64 << 10).max(1)).unwrap_or(u16::MAX);
        let mut message = self.request(command, body);
        self.message_id += u64::from(charge - 1);
        message[6..8].copy_from_slice(&charge.to_le_bytes());
        message
    }

    /// Fails unless the server still answers.
    pub fn echo(&mut self) -> Result<()> {
        self.call(raw::command::ECHO, &[4, 0, 0, 0])?
            .expect(0, "ECHO")
    }

    /// A request as it goes out, with its header.
    pub fn request(&mut self, command: u16, body: &[u8]) -> Vec<u8> {
        let mut message = raw::header(command, self.message_id).to_vec();
        self.message_id += 1;
        message[14..16].copy_from_slice(&64_u16.to_le_bytes());
        message[36..40].copy_from_slice(&self.tree_id.to_le_bytes());
        message[40..48].copy_from_slice(&self.session_id.to_le_bytes());
        message.extend_from_slice(body);
        message
    }

    /// Sends a request and waits for its answer; fails where the connection ends.
    pub fn call(&mut self, command: u16, body: &[u8]) -> Result<Answer> {
        let answer = self.try_call(command, body)?;
        answer.with_context(|| format!("command {command}: the connection has ended"))
    }

    /// Sends a request and waits for its answer; none where the connection ends.
    pub fn try_call(&mut self, command: u16, body: &[u8]) -> Result<Option<Answer>> {
        let message = self.request(command, body);
        self.send(&message)?;
        self.hear_final()
    }

    /// Sends a message.
    pub fn send(&mut self, message: &[u8]) -> Result<()> {
        match &mut self.pipe {
            Pipe::Direct(direct) => direct.send_message(message),
            Pipe::Tcp(raw) => raw.send(&frame(message)),
        }
    }

    /// Receives the next response that is not an interim one; none where the connection ends.
    pub fn hear_final(&mut self) -> Result<Option<Answer>> {
        loop {
            match self.hear()? {
                Some(answer) if answer.status() == PENDING => {}
                answer => return Ok(answer),
            }
        }
    }

    /// The next answer; none where the connection ends.
    pub fn hear(&mut self) -> Result<Option<Answer>> {
        match &mut self.pipe {
            Pipe::Direct(direct) => match direct.hear_message(ANSWER_LIMIT)? {
                Heard::Sent(message) => Ok(Some(Answer(message))),
                Heard::Closed => Ok(None),
                heard => bail!("no answer: {heard:?}"),
            },
            Pipe::Tcp(raw) => match raw.reaction()? {
                Reaction::Answer(message) => Ok(Some(Answer(message))),
                Reaction::Closed => Ok(None),
                Reaction::Silence => bail!("no answer"),
            },
        }
    }

    /// The SMB Direct below.
    pub fn below(&mut self) -> Result<&mut Direct> {
        match &mut self.pipe {
            Pipe::Direct(direct) => Ok(direct),
            Pipe::Tcp(_) => bail!("it came by TCP"),
        }
    }
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Answer(pub Vec<u8>);

impl Answer {
    /// Its status.
    pub fn status(&self) -> u32 {
        self.array(8).map_or(u32::MAX, u32::from_le_bytes)
    }

    fn expect(&self, status: u32, what: &str) -> Result<()> {
        let found = self.status();
        ensure!(found == status, "{what} gives status {found:#010x}");
        Ok(())
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let bytes = self.0.get(at..at + N).context("an answer is cut")?;
        Ok(bytes.try_into()?)
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

//! Queued frames, signed or encrypted, in as few pieces as possible.
//!
//! Heads and small payloads are gathered into one run of bytes, so that the responses to a batch of
//! requests leave in one send. A large payload is sent from its buffer.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::ops::Range;

use crate::framing::Framing;
use proto::effect::{OutMessage, Outbound, Payload, PayloadToken};
use proto::encryption::{FrameEncryption, Plaintext};
use ring::{Buffer, FileRange, Part, Pool, Source, View};

/// Length of a transform header in bytes. \[MS-SMB2\] 2.2.41
const TRANSFORM_LEN: usize = 52;
/// Length of a run, in bytes, above which the next frame starts a new run. For longer runs, a copy
/// costs more than another piece.
const RUN_BYTES: usize = 64 << 10;
/// Padding after a message, for the alignment of the next one.
const PADDING: [u8; 8] = [0; 8];
/// Most runs that are kept for reuse.
const SPARE_RUNS: usize = 4;

/// The bytes of a payload: the data of a READ response or WRITE request. In the message they follow
/// the header and the fixed part.
pub enum PayloadBytes {
    /// A small payload, which the outbox copies next to the head of the message.
    Small(Vec<u8>),
    /// A large payload at the start of a pool buffer, sent from there. The number is the length of
    /// the payload in bytes.
    Large(Buffer, usize),
    /// A large payload that [`PayloadSource::give_back`] returns unchanged after the send:
    /// encryption writes into another buffer.
    Lent(Source),
    /// A large payload in a range of a file. Before signing or encryption the outbox reads the
    /// range into a pool buffer, so that the bytes cannot change meanwhile.
    File(FileRange),
    /// A large payload in pages of the page cache, which only the kernel reads. Its message must
    /// not be signed or encrypted, and the transport must [send
    /// files](crate::Transport::sends_files).
    View(View),
}

impl PayloadBytes {
    fn len(&self) -> usize {
        match self {
            Self::File(range) => range.len,
            Self::View(view) => view.len(),
            _ => self.bytes().len(),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(buffer, len) => &buffer[..*len],
            Self::Lent(source) => source,
            Self::File(_) | Self::View(_) => {
                unreachable!("signed payloads are read into memory before")
            }
        }
    }
}

/// The owner of payloads, the data of READ responses and WRITE requests. The protocol code has only
/// their tokens (numbers). The [`Outbox`] takes the bytes when it makes the frame.
pub trait PayloadSource {
    /// Removes and returns the payload with this token; `None` if the owner does not have it. The
    /// core sends each payload once.
    fn take(&mut self, token: PayloadToken) -> Option<PayloadBytes>;

    /// Receives `source`, the bytes of the [`PayloadBytes::Lent`] with this token, back after the
    /// outbox has sent or encrypted them.
    fn give_back(&mut self, token: PayloadToken, source: Source);

    /// Receives `range`, that of the [`PayloadBytes::File`] with this token, back after the send.
    /// If reading the file failed, [`FileRange::error`] of the range has the error.
    fn give_back_file(&mut self, token: PayloadToken, range: FileRange);
}

/// The payloads (data of READ responses) of one connection that wait until the server sends their
/// response.
#[derive(Default)]
pub struct Payloads {
    held: BTreeMap<PayloadToken, PayloadBytes>,
    last: u64,
}

impl Payloads {
    /// Stores a payload until the outbox takes it to send its response, or until
    /// [`release`](Self::release). Returns the length and the token of the payload, a number that
    /// is different for each call; the protocol code passes it to the outbox.
    ///
    /// # Panics
    /// The payload has 4 GiB or more.
    pub fn keep(&mut self, bytes: PayloadBytes) -> Payload {
        let len = u32::try_from(bytes.len()).expect("a READ asks for 32 bits of length");
        self.last += 1;
        let token = PayloadToken(self.last);
        self.held.insert(token, bytes);
        Payload { token, len }
    }

    /// Returns the total length in bytes of the pool buffers that the stored payloads occupy.
    /// Payloads in other memory or in files do not count.
    pub fn buffer_bytes(&self) -> usize {
        let bytes = |payload: &PayloadBytes| match payload {
            PayloadBytes::Large(buffer, _) => buffer.len(),
            _ => 0,
        };
        self.held.values().map(bytes).sum()
    }

    /// Drops the stored payload with this token without sending it. Does nothing if no stored
    /// payload has the token.
    pub fn release(&mut self, token: PayloadToken) {
        self.held.remove(&token);
    }
}

impl PayloadSource for Payloads {
    fn take(&mut self, token: PayloadToken) -> Option<PayloadBytes> {
        self.held.remove(&token)
    }

    /// Lent bytes do not occur here.
    fn give_back(&mut self, _token: PayloadToken, _source: Source) {}

    fn give_back_file(&mut self, _token: PayloadToken, _range: FileRange) {}
}

/// A queued piece of frames.
enum Piece {
    Run(Vec<u8>),
    Large(Buffer, usize),
    Lent(PayloadToken, Source),
    File(PayloadToken, FileRange),
    View(View),
}

/// The queue of frames that one connection sends next. It signs or encrypts the messages when it
/// queues them.
#[derive(Default)]
pub struct Outbox {
    pieces: VecDeque<Piece>,
    spare: Vec<Vec<u8>>,
    /// Number of queued bytes.
    queued: usize,
    /// Number of queued bytes in runs.
    queued_in_runs: usize,
    /// Tokens of the sources and file ranges of the last [`take`](Self::take), in order.
    lent: VecDeque<PayloadToken>,
}

impl Outbox {
    /// Returns the number of bytes in the queue: headers, length prefixes and payloads (data of
    /// READ responses and WRITE requests).
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Returns the number of queued bytes in plain memory: without payloads in buffers of the pool,
    /// in memory of the owner and in files.
    pub fn queued_in_memory(&self) -> usize {
        self.queued_in_runs
    }

    /// Removes all queued frames and returns their parts in order. The caller sends them and then
    /// calls [`recycle`](Self::recycle).
    pub fn take(&mut self) -> Vec<Part> {
        self.queued = 0;
        self.queued_in_runs = 0;
        let lent = &mut self.lent;
        let part = |piece| match piece {
            Piece::Run(bytes) => Part::Bytes(bytes),
            Piece::Large(buffer, len) => Part::Buffer(buffer, 0..len),
            Piece::Lent(token, source) => {
                lent.push_back(token);
                Part::Source(source)
            }
            Piece::File(token, range) => {
                lent.push_back(token);
                Part::File(range)
            }
            Piece::View(view) => Part::View(view),
        };
        self.pieces.drain(..).map(part).collect()
    }

    /// Returns `parts` to the outbox after a send, so that their memory is reused. `parts` are all
    /// parts of the last [`take`](Self::take) in the same order; the send may have failed. Payloads
    /// that the outbox borrowed return to `payloads` by [`PayloadSource::give_back`] or
    /// [`PayloadSource::give_back_file`].
    pub fn recycle(&mut self, parts: Vec<Part>, payloads: &mut impl PayloadSource) {
        for part in parts {
            match part {
                Part::Bytes(mut bytes) if self.spare.len() < SPARE_RUNS && is_usual(&bytes) => {
                    bytes.clear();
                    self.spare.push(bytes);
                }
                Part::Bytes(_) | Part::Buffer(..) | Part::View(_) => {}
                Part::Source(source) => {
                    let token = self.lent.pop_front().expect("noted when it was taken");
                    payloads.give_back(token, source);
                }
                Part::File(range) => {
                    let token = self.lent.pop_front().expect("noted when it was taken");
                    payloads.give_back_file(token, range);
                }
            }
        }
    }

    /// Appends bytes to the queue that the connection sends as they are, without a prefix: the
    /// answer to a control message of the transport, such as a NetBIOS keep-alive.
    pub fn push_raw(&mut self, bytes: &[u8]) {
        self.run().extend_from_slice(bytes);
        self.queued += bytes.len();
        self.queued_in_runs += bytes.len();
    }

    /// Makes a frame of the message `outbound` and appends it to the queue, with the prefix of
    /// `framing`. Takes the payloads from `payloads`, and signs or encrypts the message if
    /// `outbound` requires it; buffers of `pool` hold large encrypted data and ranges of files.
    /// Returns false, without an effect, if the frame is too long for the transport.
    pub fn push(
        &mut self,
        framing: &Framing,
        pool: &Pool,
        payloads: &mut impl PayloadSource,
        outbound: Outbound,
    ) -> bool {
        let Outbound {
            messages,
            encryption,
            invalidate,
        } = outbound;
        let transform_len = if encryption.is_some() {
            TRANSFORM_LEN
        } else {
            0
        };
        let len: usize = messages.iter().map(message_len).sum();
        let Some(prefix) = framing.prefix_invalidating(len + transform_len, invalidate) else {
            return false;
        };
        let mut body = Body::default();
        for message in messages {
            body.push(message, payloads, pool, encryption.is_some());
        }
        assert_eq!(
            body.len, len,
            "a payload has the length that its driver reported"
        );
        let transform = encryption.map(|encryption| body.encrypt(&encryption, payloads));
        let head_len = prefix.bytes().len() + transform_len;
        self.queued += head_len + body.len;
        self.queued_in_runs += head_len + body.small.len();
        let run = self.run();
        run.extend_from_slice(prefix.bytes());
        run.extend_from_slice(transform.as_ref().map_or(&[], |transform| &transform[..]));
        for segment in body.segments {
            match segment {
                Segment::Small(range) => self.run().extend_from_slice(&body.small[range]),
                Segment::Large(buffer, len) => self.pieces.push_back(Piece::Large(buffer, len)),
                Segment::Lent(token, source) => {
                    self.pieces.push_back(Piece::Lent(token, source));
                }
                Segment::ToEncrypt(..) => unreachable!("encrypted above"),
                Segment::File(token, range) => self.pieces.push_back(Piece::File(token, range)),
                Segment::View(view) => self.pieces.push_back(Piece::View(view)),
            }
        }
        true
    }

    /// The run to append to: the last one, or a new one.
    fn run(&mut self) -> &mut Vec<u8> {
        let fits = matches!(self.pieces.back(), Some(Piece::Run(run)) if run.len() < RUN_BYTES);
        if !fits {
            let run = self.spare.pop().unwrap_or_default();
            self.pieces.push_back(Piece::Run(run));
        }
        match self.pieces.back_mut() {
            Some(Piece::Run(run)) => run,
            _ => unreachable!("the last piece is a run"),
        }
    }
}

/// Returns true if a run has the usual capacity. Larger ones are freed.
fn is_usual(run: &Vec<u8>) -> bool {
    run.capacity() <= 4 * RUN_BYTES
}

fn message_len(message: &OutMessage) -> usize {
    let payload = message.payload.map_or(0, |payload| payload.len as usize);
    message.head.len() + payload + usize::from(message.padding)
}

/// Reads a file range into a pool buffer, or into other memory if the pool has none.
fn loaded(mut range: FileRange, pool: &Pool) -> (PayloadBytes, FileRange) {
    let len = range.len;
    let bytes = match pool.take(len) {
        Some(mut buffer) => {
            range.load(&mut buffer[..len]);
            PayloadBytes::Large(buffer, len)
        }
        None => {
            let mut bytes = vec![0; len];
            range.load(&mut bytes);
            PayloadBytes::Small(bytes)
        }
    };
    (bytes, range)
}

/// The messages of one frame, while they are signed and encrypted.
#[derive(Default)]
struct Body {
    /// Heads, small payloads and padding, one after the other.
    small: Vec<u8>,
    segments: Vec<Segment>,
    len: usize,
}

enum Segment {
    Small(Range<usize>),
    Large(Buffer, usize),
    /// A lent payload before its encryption into the buffer.
    ToEncrypt(PayloadToken, Source, Buffer),
    /// A lent payload of a frame that is not encrypted.
    Lent(PayloadToken, Source),
    /// A file range of a frame that is not encrypted.
    File(PayloadToken, FileRange),
    /// A view of a frame that is not encrypted.
    View(View),
}

impl Body {
    /// Signs a message and adds it.
    fn push(
        &mut self,
        message: OutMessage,
        payloads: &mut impl PayloadSource,
        pool: &Pool,
        is_encrypted: bool,
    ) {
        let OutMessage {
            mut head,
            payload,
            padding,
            sign,
            answers: _,
        } = message;
        let payload = payload.map(|payload| {
            let bytes = payloads.take(payload.token);
            let bytes = bytes.expect("the core sends each payload once");
            let bytes = match bytes {
                PayloadBytes::File(range) if is_encrypted || sign.is_some() => {
                    let (bytes, range) = loaded(range, pool);
                    payloads.give_back_file(payload.token, range);
                    bytes
                }
                bytes => bytes,
            };
            (payload.token, bytes)
        });
        if let Some(sign) = sign {
            let bytes = payload.as_ref().map_or(&[][..], |(_, bytes)| bytes.bytes());
            sign.apply(&mut head, bytes, padding);
        }
        self.small(&head);
        match payload {
            None => {}
            Some((_, PayloadBytes::Small(bytes))) => self.small(&bytes),
            Some((_, PayloadBytes::Large(buffer, len))) => self.large(buffer, len),
            Some((token, PayloadBytes::Lent(source))) if is_encrypted => {
                match pool.take(source.len()) {
                    Some(buffer) => {
                        self.len += source.len();
                        let segment = Segment::ToEncrypt(token, source, buffer);
                        self.segments.push(segment);
                    }
                    None => {
                        self.small(&source);
                        payloads.give_back(token, source);
                    }
                }
            }
            Some((token, PayloadBytes::Lent(source))) => {
                self.len += source.len();
                self.segments.push(Segment::Lent(token, source));
            }
            Some((token, PayloadBytes::File(range))) => {
                self.len += range.len;
                self.segments.push(Segment::File(token, range));
            }
            Some((_, PayloadBytes::View(view))) => {
                self.len += view.len();
                self.segments.push(Segment::View(view));
            }
        }
        self.small(&PADDING[..usize::from(padding)]);
    }

    fn large(&mut self, buffer: Buffer, len: usize) {
        self.len += len;
        self.segments.push(Segment::Large(buffer, len));
    }

    fn small(&mut self, bytes: &[u8]) {
        let start = self.small.len();
        self.small.extend_from_slice(bytes);
        self.len += bytes.len();
        match self.segments.last_mut() {
            Some(Segment::Small(range)) => range.end = self.small.len(),
            _ => self.segments.push(Segment::Small(start..self.small.len())),
        }
    }

    /// Encrypts all segments, and returns lent payloads. Returns the transform header.
    fn encrypt(
        &mut self,
        encryption: &FrameEncryption,
        payloads: &mut impl PayloadSource,
    ) -> Vec<u8> {
        let mut left: &mut [u8] = &mut self.small;
        let mut parts: Vec<Plaintext<'_>> = Vec::with_capacity(self.segments.len());
        for segment in &mut self.segments {
            match segment {
                Segment::Small(range) => {
                    let (part, rest) = left.split_at_mut(range.len());
                    parts.push(part.into());
                    left = rest;
                }
                Segment::Large(buffer, len) => parts.push((&mut buffer[..*len]).into()),
                Segment::ToEncrypt(_, source, buffer) => {
                    parts.push(Plaintext::Into(source, &mut buffer[..source.len()]));
                }
                Segment::Lent(..) | Segment::File(..) | Segment::View(_) => {
                    unreachable!("encrypted payloads are in memory")
                }
            }
        }
        let transform = encryption.apply(&mut parts).to_vec();
        let encrypted = |segment| match segment {
            Segment::ToEncrypt(token, source, buffer) => {
                let len = source.len();
                payloads.give_back(token, source);
                Segment::Large(buffer, len)
            }
            segment => segment,
        };
        self.segments = mem::take(&mut self.segments)
            .into_iter()
            .map(encrypted)
            .collect();
        transform
    }
}

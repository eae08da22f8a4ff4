use std::cell::{Cell, RefCell};

use super::*;
use crate::{Framing, Transport};

/// Messages longer than this have their own destination.
const LONG: usize = 100;

struct Handler {
    framing: RefCell<Framing>,
    messages: RefCell<Vec<Vec<u8>>>,
    refused: RefCell<Vec<FrameError>>,
    has_ended: Cell<bool>,
    /// Number of messages that it still admits.
    admitted: Cell<usize>,
}

fn handler(transport: Transport) -> Rc<Handler> {
    Rc::new(Handler {
        framing: RefCell::new(Framing::new(transport)),
        messages: RefCell::default(),
        refused: RefCell::default(),
        has_ended: Cell::new(false),
        admitted: Cell::new(usize::MAX),
    })
}

impl FrameHandler for Handler {
    type Destination = ();

    fn parse(&self, bytes: &[u8]) -> Result<Next, FrameError> {
        self.framing.borrow_mut().next(bytes, 1000)
    }

    fn frame(self: &Rc<Self>, message: &mut [u8]) {
        self.messages.borrow_mut().push(message.to_vec());
    }

    fn admits(&self, _message: &[u8]) -> bool {
        self.messages.borrow().len() < self.admitted.get()
    }

    fn expect(&self, start: &[u8], message_len: usize) -> Option<()> {
        assert!(start.len() < message_len, "the message is incomplete");
        (message_len > LONG).then_some(())
    }

    fn control(&self, _answer: &[u8]) {}

    fn refuse(&self, reason: &FrameError, _answer: &[u8]) {
        self.refused.borrow_mut().push(reason.clone());
    }

    fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}

fn frame(message: &[u8]) -> Vec<u8> {
    let prefix = Framing::new(Transport::Tcp).prefix(message.len());
    [&prefix.expect("a short message")[..], message].concat()
}

fn chunk(bytes: &[u8]) -> Chunk {
    Chunk::from(bytes.to_vec())
}

#[test]
fn frames_arrive_whole_however_the_stream_is_cut() {
    let sent = [vec![1; 3], vec![2; 60], vec![], vec![3; LONG], vec![4; 1]];
    let stream: Vec<u8> = sent.iter().flat_map(|message| frame(message)).collect();
    for len in 1..=stream.len() {
        let handler = handler(Transport::Tcp);
        let mut receiver = Receiver::default();
        for piece in stream.chunks(len) {
            let received = receiver.take(&handler, chunk(piece));
            assert!(matches!(received, Received::Continue), "{received:?}");
        }
        assert!(!receiver.is_inside_frame());
        assert_eq!(*handler.messages.borrow(), sent);
    }
}

#[test]
fn a_long_frame_is_partial_in_a_chunk_and_when_gathered() {
    let long: Vec<u8> = (0..200).collect();
    let stream = [frame(b"short"), frame(&long)].concat();
    let begin = stream.len() - long.len();
    for first in [6, begin - 2] {
        let handler = handler(Transport::Tcp);
        let mut receiver = Receiver::default();
        let received = receiver.take(&handler, chunk(&stream[..first]));
        assert!(matches!(received, Received::Continue), "{received:?}");
        assert!(receiver.is_inside_frame());
        let Received::Partial(partial) = receiver.take(&handler, chunk(&stream[first..begin + 50]))
        else {
            panic!("a long frame is partial");
        };
        assert_eq!(partial.start(), &long[..50]);
        assert_eq!(partial.message_len, long.len());
        assert_eq!(partial.into_start(), &long[..50]);
        assert_eq!(*handler.messages.borrow(), [b"short".to_vec()]);
        // The driver receives the rest of the frame. The next chunk starts a new frame.
        assert!(!receiver.is_inside_frame());
        let _ = receiver.take(&handler, chunk(&frame(b"next")));
        assert_eq!(handler.messages.borrow()[1..], [b"next".to_vec()]);
    }
    let handler = handler(Transport::Tcp);
    let received = Receiver::default().take(&handler, chunk(&stream[..begin]));
    let Received::Partial(partial) = received else {
        panic!("a long frame is partial as soon as its prefix is known");
    };
    assert!(partial.start().is_empty());
}

#[test]
fn a_paused_handler_gets_the_rest_of_the_bytes_later() {
    let sent = [vec![1; 3], vec![2; 60], vec![3; LONG], vec![4; 1]];
    let stream: Vec<u8> = sent.iter().flat_map(|message| frame(message)).collect();
    for first in [3, stream.len()] {
        let handler = handler(Transport::Tcp);
        handler.admitted.set(0);
        let mut receiver = Receiver::default();
        let mut received = receiver.take(&handler, chunk(&stream[..first]));
        if first < stream.len() {
            assert!(matches!(received, Received::Continue), "no message starts");
            received = receiver.take(&handler, chunk(&stream[first..]));
        }
        for admitted in 1..sent.len() {
            let Received::Paused(rest) = received else {
                panic!("it admits no more: {received:?}");
            };
            assert!(!receiver.is_inside_frame());
            assert_eq!(*handler.messages.borrow(), sent[..admitted - 1]);
            handler.admitted.set(admitted);
            received = receiver.take(&handler, rest);
        }
        handler.admitted.set(usize::MAX);
        let Received::Paused(rest) = received else {
            panic!("one message is left: {received:?}");
        };
        assert!(matches!(receiver.take(&handler, rest), Received::Continue));
        assert_eq!(*handler.messages.borrow(), sent);
    }
}

#[test]
fn a_paused_handler_starts_no_long_frame() {
    let handler = handler(Transport::Tcp);
    handler.admitted.set(0);
    let long = frame(&[7; 200]);
    let received = Receiver::default().take(&handler, chunk(&long[..50]));
    let Received::Paused(rest) = received else {
        panic!("a long frame waits: {received:?}");
    };
    assert_eq!(rest[..], long[..50]);
}

#[test]
fn an_invalid_stream_ends() {
    let handler = handler(Transport::Tcp);
    let bytes = [&frame(b"good")[..], b"GET / HTTP/1.1"].concat();
    let received = Receiver::default().take(&handler, chunk(&bytes));
    assert!(matches!(received, Received::Ended));
    assert_eq!(*handler.messages.borrow(), [b"good".to_vec()]);
    assert_eq!(*handler.refused.borrow(), [FrameError::UnknownType(b'G')]);
}

#[test]
fn nothing_is_handled_after_the_end() {
    let handler = handler(Transport::Tcp);
    handler.has_ended.set(true);
    let received = Receiver::default().take(&handler, chunk(&frame(b"late")));
    assert!(matches!(received, Received::Ended));
    assert!(handler.messages.borrow().is_empty());
}

#[test]
fn control_messages_are_answered_between_frames() {
    let handler = handler(Transport::Nbt);
    *handler.framing.borrow_mut() = Framing::established(Transport::Nbt);
    let keep_alive = [0x85, 0, 0, 0];
    let bytes = [&keep_alive[..], &frame(b"one"), &keep_alive].concat();
    let received = Receiver::default().take(&handler, chunk(&bytes));
    assert!(matches!(received, Received::Continue));
    assert_eq!(*handler.messages.borrow(), [b"one".to_vec()]);
}

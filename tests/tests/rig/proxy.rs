//! A relay between client and server that sees every frame, and can be cut.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Result;

/// Bytes of the header of a message.
const HEADER_BYTES: usize = 64;
const SIGNED_FLAG: u8 = 0x08;
const STATUS_PENDING: u32 = 0x0000_0103;

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// From the client.
    There,
    /// From the server.
    Back,
}

/// What protects a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Nothing; its command.
    Plain(u16),
    /// A signature; its command.
    Signed(u16),
    /// It is sealed, and how many messages that are is nobody's business.
    Sealed,
    /// Neither: of the NetBIOS session service, or of the server before it answers for good.
    Other,
}

/// When a connection ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The connection, in the order in which they came, from 0.
    pub(crate) connection: usize,
    /// Which way the bytes go that count.
    pub(crate) way: Way,
    /// After so many bytes, in the midst of a frame where that is where they end.
    pub(crate) after: u64,
}

/// The relay. It goes on relaying when the value is gone.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: SocketAddrV4,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Client's and server's ends, in the order in which the connections came.
    links: Vec<[TcpStream; 2]>,
    seen: BTreeMap<(Way, Kind), u64>,
    cut: Option<Cut>,
    was_cut: bool,
}

impl Proxy {
    /// A relay to a server, without a cut to come.
    pub(crate) fn to(target: SocketAddrV4) -> Result<Proxy> {
        Proxy::with_cut(target, None)
    }

    /// A relay that cuts one connection by itself.
    pub(crate) fn with_cut(target: SocketAddrV4, cut: Option<Cut>) -> Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let state = State {
            cut,
            ..State::default()
        };
        let shared = Arc::new(Shared {
            target,
            state: Mutex::new(state),
        });
        let kept = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(io::Result::ok) {
                // A server that is not there is one that hangs up.
                let _ = kept.link(client);
            }
        });
        Ok(Proxy { port, shared })
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().links.len()
    }

    /// Whether the connection that was to be cut is.
    pub(crate) fn was_cut(&self) -> bool {
        self.shared.lock().was_cut
    }

    /// Ends a connection now.
    pub(crate) fn cut(&self, connection: usize) {
        if let Some(link) = self.shared.lock().links.get(connection) {
            hang_up(link);
        }
    }

    /// The messages that came by, and how many.
    pub(crate) fn seen(&self) -> BTreeMap<(Way, Kind), u64> {
        self.shared.lock().seen.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(self: &Arc<Shared>, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.target)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut state = self.lock();
        let connection = state.links.len();
        state.links.push([client.try_clone()?, server.try_clone()?]);
        drop(state);
        for (from, to, way) in [
            (client.try_clone()?, server.try_clone()?, Way::There),
            (server, client, Way::Back),
        ] {
            let shared = Arc::clone(self);
            thread::spawn(move || {
                let _ = shared.relay(&from, &to, (connection, way));
                hang_up(&[from, to]);
            });
        }
        Ok(())
    }

    fn relay(
        &self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        (connection, way): (usize, Way),
    ) -> io::Result<()> {
        let mut passed = 0;
        let mut frame = Vec::new();
        loop {
            let mut head = [0; 4];
            from.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
            frame.clear();
            frame.extend_from_slice(&head);
            frame.resize(4 + length, 0);
            from.read_exact(&mut frame[4..])?;
            let mut state = self.lock();
            for kind in kinds(&frame[4..]) {
                *state.seen.entry((way, kind)).or_default() += 1;
            }
            let end = state
                .cut
                .filter(|cut| cut.connection == connection && cut.way == way)
                .map(|cut| cut.after)
                .filter(|after| passed + frame.len() as u64 > *after);
            if let Some(end) = end {
                state.was_cut = true;
                let part = usize::try_from(end.saturating_sub(passed)).unwrap_or(0);
                drop(state);
                return to.write_all(&frame[..part]);
            }
            drop(state);
            to.write_all(&frame)?;
            passed += frame.len() as u64;
        }
    }
}

/// The messages of a frame.
fn kinds(mut frame: &[u8]) -> Vec<Kind> {
    let mut found = Vec::new();
    loop {
        found.push(kind(frame));
        let next = match found.last() {
            Some(Kind::Plain(_) | Kind::Signed(_)) => frame.get(20..24),
            _ => None,
        };
        let next = next.map_or(0, |bytes| {
            bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
        });
        match frame.get(next..) {
            Some(rest) if next > 0 => frame = rest,
            _ => return found,
        }
    }
}

fn kind(message: &[u8]) -> Kind {
    match message {
        [0xfd, b'S', b'M', b'B', ..] => Kind::Sealed,
        [0xfe, b'S', b'M', b'B', ..] if message.len() >= HEADER_BYTES => {
            let command = u16::from_le_bytes([message[12], message[13]]);
            let status = &message[8..12];
            match message[16] & SIGNED_FLAG != 0 {
                true => Kind::Signed(command),
                // That an answer will be long in coming needs no signature. [MS-SMB2] 3.2.5.1.3
                false if status == STATUS_PENDING.to_le_bytes() => Kind::Other,
                false => Kind::Plain(command),
            }
        }
        _ => Kind::Other,
    }
}

fn hang_up(link: &[TcpStream; 2]) {
    for stream in link {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

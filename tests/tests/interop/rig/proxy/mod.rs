//! A relay between client and server, over any transport, that counts the messages and can be cut.
//!
//! It sees the frames of TCP and NetBIOS, the messages of SMB Direct, and only the packets of QUIC.
//! The effect of a cut depends on the transport: over TCP and RDMA both ends are notified. Over
//! QUIC the packets stop, and both ends have to notice that.

mod kinds;
mod messages;
mod packets;
mod streams;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use smbeam_client::{Endpoint, Transport};
use socket2::Socket;

pub(crate) use kinds::Kind;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// From the client.
    There,
    /// From the server.
    Back,
}

/// When a connection ends by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The connection, in the order in which they came, from 0.
    pub(crate) connection: usize,
    /// The direction of the counted bytes.
    pub(crate) way: Way,
    /// Number of bytes after which the connection is cut, possibly within a frame. One-sided RDMA
    /// operations do not pass here.
    pub(crate) after: u64,
}

/// The relay. It continues after the value is dropped.
pub(crate) struct Proxy {
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

/// Closes both ends of a connection.
type HangUp = Box<dyn Fn() + Send>;

struct Shared {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The connections, in the order in which they came.
    links: Vec<HangUp>,
    /// Whether new connections end at once. Only over TCP.
    refuses: bool,
    /// Address from which the relay connects to the server; none: any. Only over TCP.
    source: Option<Ipv4Addr>,
    /// Time for which each frame is held back. Only over TCP.
    delay: Duration,
    /// Bytes that passed, both ways together.
    passed: u64,
    seen: BTreeMap<(Way, Kind), u64>,
    cut: Option<Cut>,
    was_cut: bool,
}

/// A connection and a direction.
type Line = (usize, Way);

impl Proxy {
    /// A relay to a server, without a cut to come.
    pub(crate) fn to(server: Endpoint) -> Result<Proxy> {
        Proxy::with_cut(server, None)
    }

    /// A relay that holds each frame back for `delay`, in both directions. Only over TCP.
    pub(crate) fn with_delay(server: Endpoint, delay: Duration) -> Result<Proxy> {
        let state = State {
            delay,
            ..State::default()
        };
        Proxy::with_state(server, state)
    }

    /// A relay that cuts one connection by itself.
    pub(crate) fn with_cut(server: Endpoint, cut: Option<Cut>) -> Result<Proxy> {
        let state = State {
            cut,
            ..State::default()
        };
        Proxy::with_state(server, state)
    }

    fn with_state(server: Endpoint, state: State) -> Result<Proxy> {
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
        });
        let kept = Arc::clone(&shared);
        let port = match server.transport {
            Transport::Tcp | Transport::Nbt => streams::relay(server.port, kept)?,
            Transport::Quic => packets::relay(server.port, kept)?,
            Transport::SmbDirect => messages::relay(server.port, kept)?,
        };
        let endpoint = Endpoint { port, ..server };
        Ok(Proxy { endpoint, shared })
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().links.len()
    }

    /// Whether the connection of the cut was cut.
    pub(crate) fn was_cut(&self) -> bool {
        self.shared.lock().was_cut
    }

    /// Ends a connection now.
    pub(crate) fn cut(&self, connection: usize) {
        if let Some(hang_up) = self.shared.lock().links.get(connection) {
            hang_up();
        }
    }

    /// Ends the latest connection in place of its next message in this direction.
    pub(crate) fn cut_at_next(&self, way: Way) {
        let mut state = self.shared.lock();
        state.cut = Some(Cut {
            connection: state.links.len() - 1,
            way,
            after: 0,
        });
    }

    /// Ends all connections now, and all new ones for the time `outage`. The server then sees the
    /// client at the address `source`.
    pub(crate) fn interrupt(&self, outage: Duration, source: Option<Ipv4Addr>) {
        self.shared.lock().source = source;
        self.shut();
        thread::sleep(outage);
        self.shared.lock().refuses = false;
    }

    /// Ends all connections now, and all new ones from now on.
    pub(crate) fn shut(&self) {
        let mut state = self.shared.lock();
        state.refuses = true;
        state.links.iter().for_each(|hang_up| hang_up());
    }

    /// Bytes that passed, both ways together.
    pub(crate) fn passed(&self) -> u64 {
        self.shared.lock().passed
    }

    /// The messages that came by, and how many: none over QUIC.
    pub(crate) fn seen(&self) -> BTreeMap<(Way, Kind), u64> {
        self.shared.lock().seen.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if self.endpoint.transport == Transport::SmbDirect {
            messages::forget(self.endpoint.port);
        }
    }
}

/// Forwards the bytes of one end to the other, until the end.
type Pass = fn(&Socket, &Socket, Line, &Shared) -> io::Result<()>;

/// Relays between client and server until one of them hangs up.
fn link(ends: [Socket; 2], pass: Pass, shared: &Arc<Shared>) -> io::Result<()> {
    let clone = |ends: &[Socket; 2]| io::Result::Ok([ends[0].try_clone()?, ends[1].try_clone()?]);
    let known = clone(&ends)?;
    let connection = shared.add(Box::new(move || hang_up(&known)));
    let [client, server] = clone(&ends)?;
    for (ends, way) in [(ends, Way::There), ([server, client], Way::Back)] {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let _ = pass(&ends[0], &ends[1], (connection, way), &shared);
            hang_up(&ends);
        });
    }
    Ok(())
}

fn hang_up(ends: &[Socket; 2]) {
    for socket in ends {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One connection more, and its number.
    fn add(&self, hang_up: HangUp) -> usize {
        let mut state = self.lock();
        state.links.push(hang_up);
        state.links.len() - 1
    }

    /// The address from which to connect to the server; `None` if no connection is accepted now.
    fn route(&self) -> Option<Ipv4Addr> {
        let state = self.lock();
        (!state.refuses).then_some(state.source.unwrap_or(Ipv4Addr::UNSPECIFIED))
    }

    fn delay(&self) -> Duration {
        self.lock().delay
    }

    /// Whether a later connection is still to be cut in this direction.
    fn cuts_later_than(&self, (connection, way): Line) -> bool {
        let state = self.lock();
        let cut = state.cut.filter(|_| !state.was_cut);
        cut.is_some_and(|cut| cut.connection > connection && cut.way == way)
    }

    /// Counts the messages of `bytes` bytes that are about to pass, after `passed` earlier ones.
    /// `Some(count)`: the connection is cut after `count` of these bytes.
    fn passes(&self, line: Line, passed: u64, bytes: usize, kinds: Vec<Kind>) -> Option<usize> {
        let (connection, way) = line;
        let mut state = self.lock();
        state.passed += bytes as u64;
        for kind in kinds {
            *state.seen.entry((way, kind)).or_default() += 1;
        }
        let cut = state
            .cut
            .filter(|cut| cut.connection == connection && cut.way == way)
            .filter(|cut| passed + bytes as u64 > cut.after)?;
        state.was_cut = true;
        Some(usize::try_from(cut.after.saturating_sub(passed)).unwrap_or(0))
    }
}

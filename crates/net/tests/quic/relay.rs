//! A simulated network between two peers, with configurable faults.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Faults of datagrams: each affects one datagram in this number; 0 means none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) lose_one_in: u64,
    pub(crate) swap_one_in: u64,
    pub(crate) repeat_one_in: u64,
}

/// Passes datagrams on between clients and one server, until it is dropped.
pub(crate) struct Relay {
    /// Where clients send.
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub(crate) fn start(server: SocketAddr, weather: Weather) -> Self {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = front.local_addr().expect("bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || relay(&front, server, weather, &over));
        Self {
            address,
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let thread = self.thread.take().expect("joined once");
        thread.join().expect("no panic");
    }
}

fn relay(front: &UdpSocket, server: SocketAddr, weather: Weather, over: &AtomicBool) {
    front.set_nonblocking(true).expect("a socket");
    let mut back: HashMap<SocketAddr, UdpSocket> = HashMap::new();
    let mut chance = Chance(weather, 1);
    let mut buffer = vec![0; 65_536];
    while !over.load(Ordering::Acquire) {
        let mut is_idle = true;
        while let Ok((length, client)) = front.recv_from(&mut buffer) {
            is_idle = false;
            let socket = back.entry(client).or_insert_with(|| {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
                socket.connect(server).expect("an address");
                socket.set_nonblocking(true).expect("a socket");
                socket
            });
            chance.pass(&buffer[..length], (client, true), |bytes| {
                let _ = socket.send(bytes);
            });
        }
        for (client, socket) in &back {
            while let Ok(length) = socket.recv(&mut buffer) {
                is_idle = false;
                chance.pass(&buffer[..length], (*client, false), |bytes| {
                    let _ = front.send_to(bytes, client);
                });
            }
        }
        if is_idle {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// What happens next, always the same.
struct Chance(Weather, u64);

type Way = (SocketAddr, bool);

thread_local! {
    /// The datagram that lets the next of its way pass it.
    static HELD: std::cell::RefCell<HashMap<Way, Vec<u8>>> = std::cell::RefCell::default();
}

impl Chance {
    fn is_one_in(&mut self, count: u64) -> bool {
        self.1 ^= self.1 << 13;
        self.1 ^= self.1 >> 7;
        self.1 ^= self.1 << 17;
        count > 0 && self.1.is_multiple_of(count)
    }

    fn pass(&mut self, datagram: &[u8], way: Way, mut send: impl FnMut(&[u8])) {
        let Weather {
            lose_one_in,
            swap_one_in,
            repeat_one_in,
        } = self.0;
        if self.is_one_in(lose_one_in) {
            return;
        }
        let held = HELD.with_borrow_mut(|held| held.remove(&way));
        if held.is_none() && self.is_one_in(swap_one_in) {
            HELD.with_borrow_mut(|held| held.insert(way, datagram.to_vec()));
            return;
        }
        send(datagram);
        if let Some(held) = held {
            send(&held);
        }
        if self.is_one_in(repeat_one_in) {
            send(datagram);
        }
    }
}

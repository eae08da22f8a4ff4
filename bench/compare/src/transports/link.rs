//! A lossy link: two TUN devices in two network namespaces, and threads that forward packets
//! between them with delay and loss.
//!
//! It also works on kernels without netem. A seeded generator selects the lost packets one by one,
//! so TCP and QUIC get the same link.

use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::process::{self, Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::run;

/// Lost packets of 10,000, in each direction.
pub(crate) const LOST_OF_10_000: u64 = 100;
/// Delay of a packet: half of the round trip.
pub(crate) const DELAY: Duration = Duration::from_millis(10);
/// The address of the server.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const MTU: u16 = 1500;
/// Packets in flight in one direction, beyond which packets are lost. 24 MiB are more than any
/// window.
const PACKETS_MAX: usize = 16 << 10;
/// A shorter wait is not worth a timer.
const SLACK: Duration = Duration::from_micros(50);

/// The link with its two ends.
pub(crate) struct Link {
    ends: [NetworkNamespace; 2],
    counts: [Arc<Counts>; 2],
}

/// A network namespace with a device. A child process holds it and ends with this process.
pub(super) struct NetworkNamespace {
    holder: Child,
}

#[derive(Default)]
struct Counts {
    carried: AtomicU64,
    lost: AtomicU64,
    overflowed: AtomicU64,
}

struct Packet {
    due: Instant,
    bytes: Vec<u8>,
}

impl Link {
    /// Creates both ends and starts forwarding, at `mbit` Mbit/s or without limit (0).
    pub(crate) fn new(mbit: u32) -> Result<Link> {
        let ends = [NetworkNamespace::new(MTU)?, NetworkNamespace::new(MTU)?];
        let server = ends[0].device("a", SERVER, CLIENT)?;
        let client = ends[1].device("b", CLIENT, SERVER)?;
        let counts = [Arc::new(Counts::default()), Arc::new(Counts::default())];
        carry(&server, &client, 1, mbit, &counts[0]);
        carry(&client, &server, 2, mbit, &counts[1]);
        Ok(Link { ends, counts })
    }

    /// The processes that hold the network namespaces of server and client.
    pub(super) fn holders(&self) -> [u32; 2] {
        [0, 1].map(|end| self.ends[end].holder())
    }

    /// The packet counters so far.
    pub(super) fn report(&self) -> String {
        let [down, up] = [&self.counts[0], &self.counts[1]].map(|counts| {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            format!(
                "{} carried, {} lost, {} too many",
                read(&counts.carried),
                read(&counts.lost),
                read(&counts.overflowed)
            )
        });
        format!("packets to the client: {down}; to the server: {up}")
    }
}

impl NetworkNamespace {
    /// Creates a namespace with a loopback device of `mtu` bytes.
    pub(super) fn new(mtu: u16) -> Result<NetworkNamespace> {
        let script = format!("ip link set lo mtu {mtu} up && echo ready; exec cat");
        let mut holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--"])
            .args(["/bin/sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run unshare")?;
        let output = holder.stdout.take().context("the output was piped")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line.trim() == "ready", "cannot make a network namespace");
        Ok(NetworkNamespace { holder })
    }

    /// The process that holds the namespace.
    pub(super) fn holder(&self) -> u32 {
        self.holder.id()
    }

    /// Creates a TUN device in this namespace.
    fn device(&self, name: &str, own: Ipv4Addr, other: Ipv4Addr) -> Result<Arc<tun::Device>> {
        let name = format!("sb{}{name}", process::id());
        let mut configuration = tun::Configuration::default();
        configuration.tun_name(&name).mtu(MTU);
        let device = tun::create(&configuration).context("cannot make a TUN device")?;
        let holder = self.holder.id().to_string();
        run("ip", &["link", "set", &name, "netns", &holder])?;
        let namespace = format!("--net=/proc/{holder}/ns/net");
        let inside = |arguments: &[&str]| {
            let all = [&[namespace.as_str(), "--", "ip"], arguments].concat();
            run("nsenter", &all)
        };
        let [own, other] = [own, other].map(|address| address.to_string());
        inside(&["addr", "add", &own, "peer", &other, "dev", &name])?;
        inside(&[
            "link",
            "set",
            &name,
            "mtu",
            &MTU.to_string(),
            "txqueuelen",
            "10000",
            "up",
        ])?;
        Ok(Arc::new(device))
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Starts the two threads of one direction. They end with this program.
fn carry(
    from: &Arc<tun::Device>,
    to: &Arc<tun::Device>,
    seed: u64,
    mbit: u32,
    counts: &Arc<Counts>,
) {
    let (sender, receiver) = sync_channel(PACKETS_MAX);
    let (from, to) = (Arc::clone(from), Arc::clone(to));
    let (taken, given) = (Arc::clone(counts), Arc::clone(counts));
    thread::spawn(move || take(&from, &sender, Chance(seed), mbit, &taken));
    thread::spawn(move || give(&to, &receiver, &given));
}

/// Receives packets from a device, drops some, and sets the time for delivery of the others.
fn take(
    device: &tun::Device,
    packets: &SyncSender<Packet>,
    mut chance: Chance,
    mbit: u32,
    counts: &Counts,
) {
    let mut buffer = vec![0; usize::from(MTU)];
    let mut idle_from = Instant::now();
    while let Ok(length) = device.recv(&mut buffer) {
        if chance.is_lost() {
            counts.lost.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let now = Instant::now();
        // A busy line sends the next packet after the previous one.
        idle_from = idle_from.max(now) + on_the_wire(length, mbit);
        let due = idle_from.max(now) + DELAY;
        let bytes = buffer[..length].to_vec();
        match packets.try_send(Packet { due, bytes }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                counts.overflowed.fetch_add(1, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

/// Sends packets to a device at their time for delivery.
fn give(device: &tun::Device, packets: &Receiver<Packet>, counts: &Counts) {
    for Packet { due, bytes } in packets {
        let wait = due.saturating_duration_since(Instant::now());
        if wait > SLACK {
            thread::sleep(wait);
        }
        // A device with a full queue drops the packet, as real devices do.
        if device.send(&bytes).is_ok() {
            counts.carried.fetch_add(1, Ordering::Relaxed);
        } else {
            counts.overflowed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn on_the_wire(bytes: usize, mbit: u32) -> Duration {
    match mbit {
        0 => Duration::ZERO,
        _ => Duration::from_nanos(bytes as u64 * 8000 / u64::from(mbit)),
    }
}

/// A random generator for losses: SplitMix64.
struct Chance(u64);

impl Chance {
    fn is_lost(&mut self) -> bool {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % 10_000 < LOST_OF_10_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_of_a_hundred_is_lost_and_the_same_ones_every_time() {
        let draw = |seed| {
            let mut chance = Chance(seed);
            (0..100_000).map(|_| chance.is_lost()).collect::<Vec<_>>()
        };
        let lost = draw(1).into_iter().filter(|lost| *lost).count();
        assert!((900..1100).contains(&lost), "{lost}");
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_line_takes_its_time() {
        assert_eq!(on_the_wire(1500, 100), Duration::from_micros(120));
        assert_eq!(on_the_wire(1500, 0), Duration::ZERO);
    }
}

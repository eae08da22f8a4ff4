//! Ports that belong to one test, beside other tests in other processes.
//!
//! The kernel would choose a free port, and could give it to a client of another test before the
//! server of this one binds it. So the ports of servers are below the range that the kernel chooses
//! from, and each is reserved by a lock on a file.

use std::fs::{self, File};
use std::mem;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context as _, Result, bail};

use crate::direct::port;

/// The first port of servers; [`port::listen`] uses those below it.
const FIRST: u16 = 20_000;
/// How many there are. Linux gives clients ports from 32768 upwards.
const COUNT: u16 = 12_000;
/// Distance between the first ports that two processes try: more than one process uses.
const STRIDE: u32 = 97;

/// A port that no other test uses. The value holds the reservation.
#[derive(Debug)]
pub struct ReservedPort {
    /// The number.
    pub number: u16,
    _lock: File,
}

impl ReservedPort {
    /// Reserves a port that is free for TCP, UDP and emulated RDMA on loopback.
    ///
    /// # Errors
    /// The directory of the locks cannot be used, or no port is free.
    pub fn new() -> Result<ReservedPort> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let directory = directory()?;
        let begin = process::id().wrapping_mul(STRIDE) % u32::from(COUNT);
        for _ in 0..COUNT {
            let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
            let offset = (begin + step) % u32::from(COUNT);
            let number = FIRST + u16::try_from(offset).context("an offset below 12,000")?;
            let path = directory.join(number.to_string());
            let lock =
                File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
            if lock.try_lock().is_ok() && is_free(number) {
                return Ok(ReservedPort {
                    number,
                    _lock: lock,
                });
            }
        }
        bail!("no port is free from {FIRST} to {}", FIRST + COUNT - 1)
    }

    /// The number, reserved until this process ends.
    pub fn into_number(self) -> u16 {
        let number = self.number;
        mem::forget(self);
        number
    }
}

fn directory() -> Result<PathBuf> {
    let directory = std::env::temp_dir().join("smbeam-tests-ports");
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory)
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    TcpListener::bind(address).is_ok()
        && UdpSocket::bind(address).is_ok()
        && !port::path(port).exists()
}

#[cfg(test)]
mod tests {
    use super::ReservedPort;

    #[test]
    fn a_port_is_reserved_once() {
        let ports: Vec<_> = (0..20)
            .map(|_| ReservedPort::new().expect("a port"))
            .collect();
        let mut numbers: Vec<_> = ports.iter().map(|port| port.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 20);
    }
}

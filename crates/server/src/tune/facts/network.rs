//! Facts about network interfaces.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::tune::files::{number, text};

/// Facts about a network interface with a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceFacts {
    /// Name, such as `eth0`.
    pub name: String,
    /// Speed in 10^6 bits per second; `None` if the device does not report it.
    pub speed_mbit: Option<u64>,
    /// Whether the link is half duplex.
    pub is_half_duplex: bool,
    /// Bytes of the largest packet.
    pub mtu: u64,
    /// Number of queues for received packets.
    pub receive_queues: usize,
    /// Packets that the interface lost for lack of buffers, since the start.
    pub lost: u64,
    /// Interrupts of the device.
    pub interrupts: Vec<InterruptFacts>,
    /// Name of the RDMA device of the interface; `None` without one.
    pub rdma: Option<String>,
    /// Whether the interface sends and obeys pause frames; `None` if that is unknown.
    pub has_pause: Option<bool>,
}

/// Facts about an interrupt of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptFacts {
    /// Number of the interrupt.
    pub number: u32,
    /// Interrupts of each processor since the start.
    pub counts: Vec<u64>,
}

pub(super) fn gather() -> Vec<InterfaceFacts> {
    let interrupts = text("/proc/interrupts").unwrap_or_default();
    let entries = fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<InterfaceFacts> = entries
        .filter_map(|entry| interface(&entry.path(), &interrupts))
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn interface(directory: &Path, interrupts: &str) -> Option<InterfaceFacts> {
    let name = directory.file_name()?.to_str()?.to_owned();
    let is_up = text(directory.join("operstate"))? == "up";
    if !is_up || !directory.join("device").exists() {
        return None;
    }
    let queues = fs::read_dir(directory.join("queues"))
        .into_iter()
        .flatten()
        .flatten();
    let is_receive =
        |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"rx-");
    let lost = ["rx_missed_errors", "rx_fifo_errors"];
    let lost = lost.map(|name| number(directory.join("statistics").join(name)).unwrap_or(0));
    let rdma = fs::read_dir(directory.join("device/infiniband"))
        .into_iter()
        .flatten()
        .flatten();
    let rdma = rdma
        .filter_map(|entry| entry.file_name().into_string().ok())
        .next();
    Some(InterfaceFacts {
        // A link without a known speed has -1.
        speed_mbit: number::<i64>(directory.join("speed"))
            .and_then(|speed| u64::try_from(speed).ok())
            .filter(|speed| *speed > 0),
        is_half_duplex: text(directory.join("duplex")).as_deref() == Some("half"),
        mtu: number(directory.join("mtu"))?,
        receive_queues: queues.filter(is_receive).count(),
        lost: lost.iter().sum(),
        interrupts: interrupts_of(directory, interrupts),
        has_pause: rdma.is_some().then(|| pause_frames(&name)).flatten(),
        rdma,
        name,
    })
}

fn interrupts_of(directory: &Path, text: &str) -> Vec<InterruptFacts> {
    let numbers = fs::read_dir(directory.join("device/msi_irqs"))
        .into_iter()
        .flatten()
        .flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let counts = numbers
        .into_iter()
        .filter_map(|number| interrupt(number, text));
    counts
        .filter(|facts| facts.counts.iter().any(|count| *count > 0))
        .collect()
}

/// The counts of an interrupt in /proc/interrupts.
fn interrupt(number: u32, text: &str) -> Option<InterruptFacts> {
    let cpus = text.lines().next()?.split_whitespace().count();
    let prefix = format!("{number}:");
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(&prefix))?;
    let counts = line
        .split_whitespace()
        .take(cpus)
        .map_while(|count| count.parse().ok());
    Some(InterruptFacts {
        number,
        counts: counts.collect(),
    })
}

/// Runs `ethtool -a`; `None` without the program.
fn pause_frames(interface: &str) -> Option<bool> {
    let output = Command::new("ethtool")
        .args(["-a", interface])
        .output()
        .ok()?;
    parse_pause(&String::from_utf8_lossy(&output.stdout))
}

fn parse_pause(text: &str) -> Option<bool> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim() == "on")
    };
    Some(value("RX:")? && value("TX:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_and_pause_frames_are_read() {
        let text = "           CPU0       CPU1\n 24:  1  0  IO-APIC 5-edge ACPI:Ged\n\
            125: 7 900 PCI-MSI eth0-rx-0\n";
        let found = interrupt(125, text).expect("a line");
        assert_eq!(found.counts, [7, 900]);
        assert_eq!(interrupt(12, text), None);
        let pause = "Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\toff\nTX:\t\ton\n";
        assert_eq!(parse_pause(pause), Some(false));
        assert_eq!(parse_pause(&pause.replace("off", "on")), Some(true));
        assert_eq!(parse_pause("netlink error: Operation not supported"), None);
    }
}

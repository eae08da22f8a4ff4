//! Rules about network interfaces.

use super::sources::SCALING;
use crate::tune::facts::InterfaceFacts;
use crate::tune::{Facts, Finding};

/// Speed from which on one processor cannot receive all packets, in 10^6 bits per second.
const FAST_MBIT: u64 = 10_000;
/// Largest packets that usual switches forward.
const JUMBO: u64 = 9000;
/// Most receive queues that are advised.
const QUEUES_MAX: usize = 16;
/// Interrupts that say something about their placement.
const INTERRUPTS_MIN: u64 = 100_000;
/// Part of the interrupts on one processor that counts as an uneven placement.
const UNEVEN: f64 = 0.9;

pub(super) fn advise(facts: &Facts, findings: &mut Vec<Finding>) {
    let cpus = facts.kernel.cpus;
    let transports = facts
        .config
        .as_ref()
        .map(|config| config.transports.as_slice());
    for interface in &facts.interfaces {
        let rules = [
            duplex(interface),
            mtu(interface),
            receive_queues(interface, cpus),
            interrupts(interface, cpus),
            packet_loss(interface),
            smbdirect(interface, transports),
            pause_frames(interface, transports),
        ];
        findings.extend(rules.into_iter().flatten());
    }
}

fn of(code: &'static str, interface: &InterfaceFacts, message: impl std::fmt::Display) -> Finding {
    Finding::new(code, format_args!("interface {}", interface.name), message)
}

/// The file of a value of an interface.
fn file(interface: &InterfaceFacts, name: &str) -> String {
    format!("/sys/class/net/{}/{name}", interface.name)
}

fn is_fast(interface: &InterfaceFacts) -> bool {
    interface.speed_mbit.is_some_and(|speed| speed >= FAST_MBIT)
}

fn duplex(interface: &InterfaceFacts) -> Option<Finding> {
    if !interface.is_half_duplex {
        return None;
    }
    let message = "the link is half duplex: it cannot send and receive at the same time";
    let finding = of("tune-duplex", interface, message).seen("half", file(interface, "duplex"));
    Some(finding.advise(
        "check the cable and the setting of the switch port",
        "ethtool(8)",
    ))
}

fn mtu(interface: &InterfaceFacts) -> Option<Finding> {
    if !is_fast(interface) || interface.mtu >= JUMBO {
        return None;
    }
    let message = "a fast link with small packets: the processor time of each byte is higher";
    let finding = of("tune-mtu", interface, message).seen(interface.mtu, file(interface, "mtu"));
    Some(finding.advise(
        format_args!(
            "ip link set {} mtu {JUMBO}, if all clients and switches of the network do the same",
            interface.name
        ),
        "ip-link(8)",
    ))
}

fn receive_queues(interface: &InterfaceFacts, cpus: usize) -> Option<Finding> {
    let wanted = cpus.min(QUEUES_MAX);
    if !is_fast(interface) || interface.receive_queues >= wanted {
        return None;
    }
    let queues = interface.receive_queues;
    let message = format!("{queues} receive queues: as many processors take all packets");
    let finding = of("tune-receive-queues", interface, message).seen(
        format_args!("{queues} queues, {cpus} processors"),
        file(interface, "queues"),
    );
    Some(finding.advise(
        format_args!("ethtool -L {} combined {wanted}", interface.name),
        SCALING,
    ))
}

fn interrupts(interface: &InterfaceFacts, cpus: usize) -> Option<Finding> {
    let mut sums = vec![0; cpus];
    for interrupt in &interface.interrupts {
        for (sum, count) in sums.iter_mut().zip(&interrupt.counts) {
            *sum += count;
        }
    }
    let (total, most) = (sums.iter().sum::<u64>(), *sums.iter().max()?);
    let is_uneven = most as f64 > total as f64 * UNEVEN;
    // The first interrupt of most cards is not for packets.
    if cpus < 2 || interface.interrupts.len() < 3 || total < INTERRUPTS_MIN || !is_uneven {
        return None;
    }
    let cpu = sums.iter().position(|sum| *sum == most)?;
    let message = format!("processor {cpu} handles nearly all interrupts of the interface");
    let finding = of("tune-interrupts", interface, message).seen(
        format_args!("{most} of {total} interrupts"),
        "/proc/interrupts",
    );
    Some(finding.advise(
        "systemctl start irqbalance, or write a processor for each queue to \
         /proc/irq/NUMBER/smp_affinity_list",
        SCALING,
    ))
}

fn packet_loss(interface: &InterfaceFacts) -> Option<Finding> {
    if interface.lost == 0 {
        return None;
    }
    let message = "the interface lost packets because its receive ring was full";
    let finding = of("tune-packet-loss", interface, message).seen(
        format_args!("{} lost packets", interface.lost),
        file(interface, "statistics"),
    );
    Some(finding.advise(
        format_args!(
            "ethtool -G {} rx MAXIMUM (ethtool -g shows it)",
            interface.name
        ),
        "ethtool(8)",
    ))
}

fn has_smbdirect(transports: &[String]) -> bool {
    transports
        .iter()
        .any(|transport| transport.starts_with("smbdirect"))
}

fn smbdirect(interface: &InterfaceFacts, transports: Option<&[String]>) -> Option<Finding> {
    let device = interface.rdma.as_deref()?;
    let transports = transports?;
    if has_smbdirect(transports) {
        return None;
    }
    let message = "the interface has RDMA, which the server does not use: data could move without \
        copies";
    let finding = of("tune-smbdirect", interface, message)
        .seen(device, file(interface, "device/infiniband"))
        .seen(
            format_args!("server.transports = {transports:?}"),
            "configuration",
        );
    let all: Vec<&str> = transports
        .iter()
        .map(String::as_str)
        .chain(["smbdirect"])
        .collect();
    Some(finding.advise(
        format_args!("[server] transports = {all:?}"),
        "docs/transports.md",
    ))
}

fn pause_frames(interface: &InterfaceFacts, transports: Option<&[String]>) -> Option<Finding> {
    let is_used = transports.is_none_or(has_smbdirect);
    if interface.has_pause != Some(false) || !is_used {
        return None;
    }
    let message = "RoCE without pause frames: a full queue of a switch loses packets, which RDMA \
        sends again slowly";
    let finding = of("tune-pause-frames", interface, message).seen("RX or TX: off", "ethtool -a");
    Some(finding.advise(
        format_args!(
            "ethtool -A {} rx on tx on, or priority flow control on the card and the switch",
            interface.name
        ),
        "docs/transports.md",
    ))
}

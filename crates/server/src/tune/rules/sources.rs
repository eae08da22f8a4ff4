//! The documentation that findings name, and the window that links need.

/// Documentation of the parameters of memory.
pub(super) const VM: &str = "https://docs.kernel.org/admin-guide/sysctl/vm.html";
/// Documentation of the parameters of the network.
pub(super) const NET: &str = "https://docs.kernel.org/admin-guide/sysctl/net.html";
/// Documentation of the parameters of TCP.
pub(super) const IP: &str = "https://docs.kernel.org/networking/ip-sysctl.html";
/// Documentation of receive queues and interrupts.
pub(super) const SCALING: &str = "https://docs.kernel.org/networking/scaling.html";
/// Documentation of queues of block devices.
pub(super) const QUEUE: &str = "https://docs.kernel.org/admin-guide/abi-stable.html";
/// Documentation of XFS.
pub(super) const XFS: &str = "mkfs.xfs(8), xfs(5)";
/// Documentation of RAIDs.
pub(super) const MD: &str = "https://docs.kernel.org/admin-guide/md.html";
/// Documentation of the configuration.
pub(super) const CONFIGURATION: &str = "docs/configuration.md";
/// Measurements of this project.
pub(super) const PERFORMANCE: &str = "docs/performance.md";

/// Seconds in which data in flight must be able to wait: a busy server answers within them.
const LATENCY_BUDGET: f64 = 0.010;

/// Bytes in flight that a link needs at the latency budget. `bits` is its speed in bits per second.
pub(super) fn window_bytes(bits: u64) -> u64 {
    (bits as f64 / 8.0 * LATENCY_BUDGET) as u64
}

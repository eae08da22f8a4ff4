//! What limits the load of a running server.

mod decide;
mod interval;
mod processors;
mod sample;
mod stations;

pub use self::decide::{LIMITS, Limit};
pub use self::interval::Interval;
pub use self::sample::{DiskSample, LinkSample, ProcessSample, Sample, SocketTimes, ThreadTime};

#[cfg(test)]
mod tests;

//! Takes memory back: from peers that make no progress while others wait, and from idle pools.

use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ring::either;

use super::Worker;
use crate::connection::Connection;

/// Time between two checks of the progress of the peers.
const INTERVAL: Duration = Duration::from_secs(1);
/// The same while a request waits for a buffer.
const SHORTAGE_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two returns of unused buffers to the system. A buffer returns after one to two of
/// them.
const TRIM_INTERVAL: Duration = Duration::from_secs(15);

impl Worker {
    /// Runs until the worker ends.
    pub(super) async fn reclaim_memory(self: Rc<Self>) {
        let pool = self.handle().pool();
        let mut last_trim = Instant::now();
        loop {
            let starved = pool.starved();
            let shortage = &self.context.shortage;
            if starved.is_some() {
                self.handle().sleep(SHORTAGE_INTERVAL).await;
            } else {
                shortage.lower();
                let sleep = pin!(self.handle().sleep(INTERVAL));
                either(sleep, pin!(shortage.raised())).await;
            }
            let now = Instant::now();
            if now.saturating_duration_since(last_trim) >= TRIM_INTERVAL {
                pool.trim();
                last_trim = now;
            }
            let connections: Vec<Rc<Connection>> =
                self.connections.borrow().values().cloned().collect();
            let is_short = pool.starved().is_some();
            let mut stalled: Vec<(usize, Rc<Connection>)> = Vec::new();
            for connection in connections {
                if is_short {
                    connection.reclaim_frame(now);
                }
                if let Some(bytes) = connection.stalled_bytes(now).filter(|bytes| *bytes > 0) {
                    stalled.push((bytes, connection));
                }
            }
            let starved = pool.starved();
            let is_memory_full = self.shared().core.ledger().is_response_memory_full();
            if starved.is_some() || is_memory_full {
                if let Some(starved) = starved.filter(|starved| starved.is_group_over_share) {
                    stalled.retain(|(_, connection)| connection.group() == starved.group);
                }
                // One connection each time: its buffers may be enough.
                let largest = stalled.into_iter().max_by_key(|(bytes, _)| *bytes);
                if let Some((bytes, connection)) = largest {
                    connection.reclaim(bytes);
                }
            }
        }
    }
}

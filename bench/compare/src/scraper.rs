//! A client that scrapes the metrics of a server, as a monitoring system does.

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use smbeam_tests::metrics::Metrics;

/// Time between two scrapes.
const INTERVAL: Duration = Duration::from_secs(1);

/// A thread that scrapes every second.
pub(crate) struct Scraper {
    stop: Sender<()>,
    thread: JoinHandle<Result<()>>,
}

impl Scraper {
    /// Starts the thread.
    pub(crate) fn start(server: SocketAddr) -> Self {
        let (stop, stopped) = channel();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                Metrics::scrape(server)?;
            }
            Ok(())
        });
        Self { stop, thread }
    }

    /// Ends the thread.
    ///
    /// # Errors
    /// A scrape failed.
    pub(crate) fn stop(self) -> Result<()> {
        drop(self.stop);
        let scraped = self.thread.join().ok().context("the scraper panicked")?;
        scraped.context("cannot scrape the metrics")
    }
}

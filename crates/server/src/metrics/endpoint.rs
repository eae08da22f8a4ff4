//! The HTTP server for metrics and health, on its own thread.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use ring::either;
use tokio::runtime;
use tokio::sync::Notify;
use tracing::warn;

use super::health::{Health, Phase, Running};
use super::http;
use super::routes::Routes;
use super::token;
use crate::config::MetricsSection;
use crate::error::StartError;
use crate::observer::Observer;

/// Most threads for requests: one can wait for a file system that does not answer.
const THREADS_MAX: usize = 4;

/// The HTTP server for metrics and health. It has its own thread, so that no client of it delays
/// the workers. Dropping it ends the thread.
pub struct Endpoint {
    address: SocketAddr,
    health: Arc<Health>,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Listens on the address of the configuration and starts a thread that answers. Call it before
    /// the server starts: until [`server_started`](Self::server_started), the server is not ready.
    /// `None` if the configuration has no address.
    ///
    /// # Errors
    /// The token cannot be read, the address cannot be listened on, or the thread cannot be
    /// started.
    pub fn start(section: &MetricsSection) -> Result<Option<Self>, StartError> {
        let Some(listen) = &section.listen else {
            return Ok(None);
        };
        let listen = *listen.get_ref();
        let token = token::load(section)?;
        let failed = |error| StartError::Metrics {
            setting: format!("metrics.listen: {listen}"),
            error,
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let (health, stop) = (Health::new(), Arc::new(Notify::new()));
        let routes = Routes {
            health: Arc::clone(&health),
            token,
            is_local: listen.ip().to_canonical().is_loopback(),
            has_page: section.page,
        };
        let stopped = Arc::clone(&stop);
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(THREADS_MAX)
            .thread_name("metrics")
            .build();
        let runtime = runtime.map_err(failed)?;
        let run = move || {
            let served = runtime.block_on(serve(listener, Arc::new(routes), &stopped));
            if let Err(error) = served {
                warn!(%error, "the HTTP server for metrics has ended");
            }
            // It does not wait for a file system that does not answer.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(run);
        Ok(Some(Self {
            address,
            health,
            stop,
            thread: Some(thread.map_err(failed)?),
        }))
    }

    /// Returns the address and port that the HTTP server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reports from now on the state of this running server. `config` is the path of its
    /// configuration file, for the status; `None` without a file.
    pub fn server_started(&self, observer: Observer, config: Option<PathBuf>) {
        let running = Running { observer, config };
        self.health.set(Phase::Running(running));
    }

    /// Reports from now on that the server stops: it is not ready.
    pub fn server_stops(&self) {
        self.health.set(Phase::Stopping);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            warn!("the thread of the HTTP server for metrics has panicked");
        }
    }
}

/// Serves clients until the notification.
async fn serve(listener: TcpListener, routes: Arc<Routes>, stop: &Notify) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    either(pin!(http::serve(listener, routes)), pin!(stop.notified())).await;
    Ok(())
}

//! The HTTP server: accepts clients, and bounds their number, time and bytes.
//!
//! Each connection serves one request. A client of a monitoring system sends one every few seconds,
//! so that a new connection costs nothing, and no client occupies a place without a request.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::routes::Routes;

/// Most clients at a time. Further ones receive status 503.
const CLIENTS_MAX: usize = 16;
/// Most clients at a time that receive this status. The server drops further ones.
const REFUSALS_MAX: usize = 16;
/// Longest time of a client, from its connection to the end of its answer.
const CLIENT_TIME: Duration = Duration::from_secs(10);
/// Longest time in which a client receives the end of its answer.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// Most bytes of a request without its body. It is the least value that hyper accepts.
const REQUEST_MAX: usize = 8 << 10;
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// Most bytes that the server receives and ignores after its answer. If it closed the socket with
/// such bytes, the client could lose the answer.
const IGNORED_MAX: usize = 64 << 10;
/// Time before the next accept after a failure, such as a shortage of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\
    content-length: 0\r\n\r\n";
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\
    retry-after: 1\r\ncontent-length: 0\r\n\r\n";

/// Accepts clients until the future is dropped.
pub(super) async fn serve(listener: TcpListener, routes: Arc<Routes>) {
    let clients = Arc::new(Semaphore::new(CLIENTS_MAX));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a client of the metrics");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Ok(permit) = Arc::clone(&clients).try_acquire_owned() {
            let routes = Arc::clone(&routes);
            tokio::spawn(async move {
                serve_client(stream, routes).await;
                drop(permit);
            });
        } else if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
            tokio::spawn(async move {
                close(stream, BUSY).await;
                drop(permit);
            });
        }
    }
}

/// Answers one request.
async fn serve_client(stream: TcpStream, routes: Arc<Routes>) {
    let has_request = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&has_request);
    let service = service_fn(move |request| {
        noted.store(true, Ordering::Relaxed);
        let routes = Arc::clone(&routes);
        // Only a connection that can move returns its socket: the future is in a box.
        Box::pin(async move { Ok::<_, Infallible>(routes.answer(request).await) })
    });
    let mut connection = http1::Builder::new()
        .keep_alive(false)
        .max_headers(HEADERS_MAX)
        .max_buf_size(REQUEST_MAX)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    let serving = poll_fn(|context| connection.poll_without_shutdown(context));
    let served = timeout(CLIENT_TIME, serving).await;
    let stream = connection.into_parts().io.into_inner();
    match served {
        Ok(Ok(())) => close(stream, &[]).await,
        Ok(Err(error)) => {
            debug!(%error, "a client of the metrics sent a bad request");
            close(stream, &[]).await;
        }
        Err(_) if !has_request.load(Ordering::Relaxed) => close(stream, TIMED_OUT).await,
        // A client that does not read its answer.
        Err(_) => {}
    }
}

/// Sends the last bytes, and closes the socket so that the client receives them.
async fn close(mut stream: TcpStream, last: &[u8]) {
    let closing = async {
        stream.write_all(last).await?;
        stream.shutdown().await?;
        let mut ignored = [0; 4096];
        let mut left = IGNORED_MAX;
        while left > 0 {
            match stream.read(&mut ignored).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        Ok::<(), io::Error>(())
    };
    if let Ok(Err(error)) = timeout(CLOSE_TIME, closing).await {
        debug!(%error, "cannot close the connection of a client of the metrics");
    }
}

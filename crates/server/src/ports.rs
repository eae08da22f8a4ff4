//! The time in which the port of an ended process becomes free.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long a port may stay in use after its process has ended. The kernel completes the operations
/// of an `io_uring` instance after the end of the process, and keeps their sockets open until then.
/// So a supervisor that restarts a killed server at once finds the port in use.
const RELEASE_TIME: Duration = Duration::from_secs(2);
/// Time between two attempts.
const INTERVAL: Duration = Duration::from_millis(20);

/// Binds to an address. If it is in use, tries again until [`RELEASE_TIME`] has passed.
///
/// # Errors
/// The error of the last attempt.
pub(crate) fn bind_when_free<T>(mut bind: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        match bind() {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && start.elapsed() < RELEASE_TIME =>
            {
                thread::sleep(INTERVAL);
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_that_becomes_free_is_taken() {
        let mut holder = Some(TcpListener::bind("127.0.0.1:0").expect("a port"));
        let address = holder.as_ref().expect("it listens").local_addr();
        let address = address.expect("an address");
        let mut attempts = 0;
        let bound = bind_when_free(|| {
            attempts += 1;
            let result = TcpListener::bind(address);
            holder = None;
            result
        });
        assert_eq!(bound.expect("a listener").local_addr().ok(), Some(address));
        assert_eq!(attempts, 2);
    }

    #[test]
    fn other_errors_are_returned_at_once() {
        let mut attempts = 0;
        let result: io::Result<()> = bind_when_free(|| {
            attempts += 1;
            Err(io::ErrorKind::PermissionDenied.into())
        });
        assert_eq!(
            result.expect_err("it is denied").kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(attempts, 1);
    }
}

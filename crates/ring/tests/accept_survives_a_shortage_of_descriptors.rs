//! Without free descriptors a listener pauses, and it continues when descriptors are free again.
//!
//! The limit belongs to the process, so this scenario runs in a separate process.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use smbeam_ring::{Config, Handle, Io, Listener, Runtime};

#[test]
fn over_both_drivers() {
    for io in [Io::Uring, Io::Epoll] {
        let config = Config {
            io,
            ..Config::default()
        };
        let runtime = Runtime::new(&config).expect("the driver is available");
        runtime.block_on(accept_when_descriptors_are_back(runtime.handle()));
    }
}

async fn accept_when_descriptors_are_back(handle: Handle) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(&handle, any, false).expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    let client = TcpStream::connect(address).expect("connect");
    let old = limit_descriptors(None);
    limit_descriptors(Some(lowest_free_descriptor()));
    let accepting = handle.spawn(async move { listener.accept().await });
    handle.sleep(Duration::from_millis(30)).await;
    let is_waiting = !accepting.is_finished();
    limit_descriptors(Some(old));
    assert!(is_waiting, "there is no descriptor to accept with");
    accepting
        .await
        .expect("the task ends")
        .expect("accepted when descriptors are back");
    drop(client);
}

fn lowest_free_descriptor() -> u64 {
    let lowest = std::fs::File::open("/dev/null").expect("one more");
    u64::try_from(lowest.as_raw_fd()).expect("a descriptor is not negative")
}
/// Sets the soft limit if the caller passes one, and returns the previous one.
fn limit_descriptors(limit: Option<u64>) -> u64 {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer designates a live local of the right type.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) };
    assert_eq!(result, 0);
    let old = limits.rlim_cur;
    if let Some(limit) = limit {
        limits.rlim_cur = limit;
        // SAFETY: as above; the kernel only reads it.
        let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) };
        assert_eq!(result, 0);
    }
    old
}

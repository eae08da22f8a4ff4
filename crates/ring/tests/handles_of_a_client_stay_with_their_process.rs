//! A child of a process with a client: its copies of the handles fail at once and leave the
//! parent's connections alone, and it may connect again.
//!
//! The test is in this crate, because forking needs unsafe code, which the client's crate forbids.

use std::net::IpAddr;
use std::path::Path;

use auth::{Account, Users};
use smbeam_client::{Client, Credentials, Error, OpenOptions, Options, Region, Session, Wait};
use smbeam_server::config::{Config, ServerSection, ShareSection};
use smbeam_server::{Accounts, Server};

/// Seconds after which a hanging child is killed.
const TIMEOUT_SECONDS: u32 = 30;

fn start(directory: &Path) -> Server {
    let config = Config {
        server: ServerSection {
            listen: Some(vec![IpAddr::from([127, 0, 0, 1]).into()]),
            transports: vec![smbeam_server::config::unplaced("tcp:0".to_owned())],
            ..ServerSection::default()
        },
        shares: vec![ShareSection::new("data", directory, false)],
        ..Config::default()
    };
    let config = config.checked(Path::new("test")).expect("a configuration");
    let mut account = Account::new("alice", "open sesame").expect("an account");
    if smbeam_server::may_assume_identities() {
        account.unix = Some("root".to_owned());
    }
    let mut users = Users::default();
    users.insert(account);
    let accounts = Accounts::fixed(&config, users);
    Server::start(&config, accounts).expect("a server")
}

fn connect(port: u16) -> Result<Session, Error> {
    let options = Options::default().threads(1);
    let credentials = Credentials::new(None, "alice", "open sesame");
    let client = Client::new(options)?;
    client.connect("127.0.0.1", Some(port), &credentials).wait()
}

/// Runs `child` in a child process and returns its exit code.
fn forked(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs only `child` and ends with `_exit`, so it unwinds into nothing of the
    // parent. The locks of the allocator are free in the child: the C library guarantees that.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: a call without pointers.
        unsafe { libc::alarm(TIMEOUT_SECONDS) };
        let code = child();
        // SAFETY: a call without pointers, which does not return.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to a local variable that the call fills.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    assert!(libc::WIFEXITED(status), "the child was killed: {status:#x}");
    libc::WEXITSTATUS(status)
}

#[test]
fn a_child_fails_at_once_and_connects_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("file"), "hello").expect("a file");
    let server = start(directory.path());
    let port = server.listening()[0].address.port();
    let session = connect(port).expect("a session");
    let share = session.share("data").wait().expect("a share");
    let open = OpenOptions::new().read(true);
    let file = share.open("file", &open).wait().expect("open");
    let copies = (session.clone(), share.clone(), file.clone());
    let code = forked(move || {
        let (session, share, file) = copies;
        let is_forked = |error: Error| matches!(error, Error::Forked { .. });
        let checks = [
            session.echo().wait().is_err_and(is_forked),
            share.metadata("file").wait().is_err_and(is_forked),
            file.read_at(vec![0; 5], 0).wait().0.is_err_and(is_forked),
            file.close().wait().is_err_and(is_forked),
        ];
        drop((session, share, file));
        let read = connect(port)
            .and_then(|session| session.share("data").wait())
            .and_then(|share| share.read("file").wait());
        let is_read = read.is_ok_and(|bytes| bytes == b"hello");
        let failed = checks.into_iter().chain([is_read]).filter(|ok| !ok);
        failed.count() as i32
    });
    assert_eq!(code, 0, "things that went wrong in the child");
    // The parent's connections are unchanged.
    let (count, bytes) = file.read_at(vec![0; 5], 0).wait();
    assert_eq!((count.expect("read"), &bytes[..]), (5, &b"hello"[..]));
    file.close().wait().expect("closed");
    drop((share, session));
    server.stop();
}

#[test]
fn a_child_inherits_the_bytes_that_were_read() {
    const PAGES: usize = 2 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("file"), vec![7; PAGES]).expect("a file");
    let server = start(directory.path());
    let session = connect(server.listening()[0].address.port()).expect("a session");
    let share = session.share("data").wait().expect("a share");
    let file = share.open("file", &OpenOptions::new().read(true)).wait();
    let read = file.expect("open").read(0, 1 << 20).wait().expect("read");
    let pages = Region::of_pages(PAGES).expect("memory");
    let code = forked(move || {
        let has_bytes = read.iter().all(|byte| *byte == 7) && pages.iter().all(|byte| *byte == 0);
        // The kernel places new mappings where the child inherited none.
        let mut own: Vec<_> = (0..8).map(|_| vec![1_u8; PAGES]).collect();
        drop((read, pages));
        own.iter_mut().for_each(|own| own.fill(2));
        i32::from(!has_bytes || own.iter().flatten().any(|byte| *byte != 2))
    });
    assert_eq!(code, 0, "the bytes are inherited, and nothing else");
    drop((share, session));
    server.stop();
}

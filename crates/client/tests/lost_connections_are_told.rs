//! Connections that break, servers that go, passwords that are wrong.

mod rig;

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use rig::meddler::{command, meddler};
use rig::{Rig, SHARE, connect, options, pattern};
use smbeam_client::{
    Channels, Client, Credentials, Error, OpenOptions, Protection, Session, Status, Wait,
};
use wire::Command;

/// A relay that can be cut.
struct Proxy {
    port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    /// The number of connections that end at once.
    refused: Arc<AtomicUsize>,
}

impl Proxy {
    fn new(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        let refused = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&refused);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if left.load(Ordering::Relaxed) > 0 {
                    left.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let server = TcpStream::connect(("127.0.0.1", target)).expect("the server");
                // Before the first byte, after which a test may cut.
                let ends = [&client, &server].map(|end| end.try_clone().expect("a clone"));
                kept.lock().expect("no panic").extend(ends);
                relay(&client, &server);
                relay(&server, &client);
            }
        });
        Self {
            port,
            streams,
            refused,
        }
    }

    fn cut(&self) {
        for stream in self.streams.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Cuts the connection that came last, but never the only one.
    fn cut_last_but_first(&self) {
        let mut streams = self.streams.lock().expect("no panic");
        let ends = streams.len();
        if ends > 2 {
            for stream in streams.drain(ends - 2..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

fn relay(from: &TcpStream, to: &TcpStream) {
    let mut from = from.try_clone().expect("a clone");
    let mut to = to.try_clone().expect("a clone");
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

#[test]
fn a_cut_fails_what_is_under_way_and_what_comes_after() {
    let rig = Rig::new();
    let proxy = Proxy::new(rig.port());
    std::fs::write(rig.path("file"), pattern(64 << 20, 1)).expect("a file");
    for _ in 0..5 {
        let once = options().reconnect_timeout(Duration::ZERO);
        let session = connect(proxy.port, once).expect("a session");
        let share = session.share(SHARE).wait().expect("a share");
        let open = OpenOptions::new().read(true);
        let file = share.open("file", &open).wait().expect("open");
        let reader = file.clone();
        let reading = std::thread::spawn(move || {
            loop {
                let (result, buffer) = reader.read_at(vec![0; 64 << 20], 0).wait();
                if let Err(error) = result {
                    return (error, buffer.len());
                }
            }
        });
        proxy.cut();
        let (error, len) = reading.join().expect("no panic");
        assert!(error.is_lost(), "{error}");
        assert!(error.to_string().contains("file"), "{error}");
        assert_eq!(len, 64 << 20, "the buffer comes back");
        let error = share.metadata("file").wait().expect_err("lost");
        assert!(error.is_lost(), "{error}");
    }
}

/// Asks once more as soon as there is an answer, on the thread that brings it.
struct Again(Session);

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        let mut context = Context::from_waker(Waker::noop());
        let _ = pin!(self.0.echo()).poll(&mut context);
    }
}

/// A request that finds its channel ended, but not yet gone, keeps nobody from taking that out. It
/// takes a while to go: the server reads no more, and there is much that it has to read.
#[test]
fn what_is_asked_while_a_channel_ends_is_told_of() {
    let rig = Rig::new();
    let (reads_no_more, may_answer) = mpsc::channel();
    let (hold, held) = mpsc::channel::<()>();
    let to_server = move |frame: Vec<u8>| {
        if command(&frame) == Some(Command::WRITE) {
            let _ = reads_no_more.send(());
            let _ = held.recv();
        }
        vec![frame]
    };
    let to_client = move |frame: Vec<u8>| match command(&frame) {
        Some(Command::ECHO) => {
            let _ = may_answer.recv();
            vec![frame, b"no answer".to_vec()]
        }
        _ => vec![frame],
    };
    let port = meddler(rig.port(), Box::new(to_server), Box::new(to_client));
    let session = connect(port, options()).expect("a session");
    let share = session.share(SHARE).wait().expect("a share");
    let open = OpenOptions::new().write(true).create(true);
    let file = share.open("file", &open).wait().expect("open");
    let waker = Waker::from(Arc::new(Again(session.clone())));
    let mut echo = pin!(session.echo());
    let polled = echo.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let (told, errors) = mpsc::channel();
    std::thread::spawn(move || {
        let (result, _) = file.write_at(vec![1; 64 << 20], 0).wait();
        let _ = told.send(result.expect_err("nobody reads it"));
    });
    // A thread that hangs cannot be joined: the test has to end by itself.
    let error = errors.recv_timeout(Duration::from_secs(60));
    let error = error.expect("the channel goes");
    assert!(error.is_lost(), "{error}");
    echo.wait().expect("it was answered");
    drop(hold);
}

#[test]
fn a_server_that_goes_is_told_of() {
    let mut rig = Rig::new();
    let share = rig.share();
    rig.stop();
    let error = share.metadata("").wait().expect_err("gone");
    assert!(error.is_lost(), "{error}");
    let error = rig.connect(options()).expect_err("gone");
    assert!(matches!(error, Error::Connect(..)), "{error}");
}

#[test]
fn a_wrong_password_is_told_of() {
    let rig = Rig::new();
    let client = Client::new(options()).expect("a client");
    let credentials = Credentials::new(None, rig::USER, "wrong");
    let error = client
        .connect("localhost", Some(rig.port()), &credentials)
        .wait()
        .expect_err("wrong");
    assert_eq!(error.status(), Some(Status::LOGON_FAILURE));
    assert!(error.to_string().contains("LOGON_FAILURE"), "{error}");
    let missing = rig.session().share("nothing").wait().expect_err("no share");
    assert_eq!(missing.status(), Some(Status::BAD_NETWORK_NAME));
}

#[test]
fn an_unknown_host_is_told_of() {
    let client = Client::new(options()).expect("a client");
    let credentials = rig::credentials();
    let connecting = client.connect("no such host", None, &credentials);
    let error = connecting.wait().expect_err("unknown");
    assert!(matches!(error, Error::Resolve(..)), "{error}");
}

#[test]
fn a_server_that_says_nothing_is_given_up_on() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let options = options().login_timeout(Duration::from_millis(200));
    let error = connect(port, options).expect_err("nothing is said");
    assert!(matches!(error, Error::NotSmb(..)), "{error}");
}

#[test]
fn what_is_agreed_on_is_told() {
    let rig = Rig::new();
    let options = options().protection(Protection::Encrypt);
    let session = rig.connect(options).expect("a session");
    session.echo().wait().expect("echo");
    let info = session.info();
    assert!(info.is_encrypted && info.cipher.is_some());
    assert_eq!(info.channels.len(), 1);
    assert_eq!(info.channels[0].peer.port(), rig.port());
    assert!(info.channels[0].received > 0 && info.channels[0].sent > 0);
    session.close().wait().expect("closed");
    let error = session.echo().wait().expect_err("closed");
    assert!(error.is_lost(), "{error}");
    assert!(error.to_string().contains("closed"), "{error}");
}

/// A session of several channels goes on with those that are left. Of a server that has but one
/// there is nothing to cut, and the file moves all the same.
#[test]
fn a_channel_that_breaks_is_not_missed() {
    let rig = Rig::new();
    let proxy = Proxy::new(rig.port());
    let options = options().channels(Channels::Exactly(3));
    let session = connect(proxy.port, options).expect("a session");
    let share = session.share(SHARE).wait().expect("a share");
    let open = OpenOptions::new().read(true).write(true).create(true);
    let file = share.open("file", &open).wait().expect("open");
    let bytes = pattern(64 << 20, 9);
    for _ in 0..2 {
        let writer = file.clone();
        let sent = bytes.clone();
        let writing = std::thread::spawn(move || writer.write_at(sent, 0).wait().0);
        proxy.cut_last_but_first();
        let written = writing.join().expect("no panic");
        assert_eq!(written.expect("written"), bytes.len());
        let reader = file.clone();
        let reading = std::thread::spawn(move || reader.read_at(vec![0; 64 << 20], 0).wait());
        proxy.cut_last_but_first();
        let (count, back) = reading.join().expect("no panic");
        assert_eq!(count.expect("read"), bytes.len());
        assert!(back == bytes);
    }
}

/// A connection in place of a lost one ends before the login. The client opens another one.
#[test]
fn a_channel_is_replaced_by_a_later_attempt() {
    const LIMIT: Duration = Duration::from_secs(60);
    let rig = Rig::new();
    let proxy = Proxy::new(rig.port());
    let options = options().channels(Channels::Exactly(2));
    let session = connect(proxy.port, options).expect("a session");
    let channels = || session.info().channels.len();
    assert_eq!(channels(), 2);
    proxy.refused.store(1, Ordering::Relaxed);
    proxy.cut_last_but_first();
    let start = Instant::now();
    let wait_for = |what: &str, is_reached: &dyn Fn() -> bool| {
        while !is_reached() {
            assert!(start.elapsed() < LIMIT, "no {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_for("refused connection", &|| {
        proxy.refused.load(Ordering::Relaxed) == 0
    });
    wait_for("second channel", &|| channels() == 2);
}

//! A change of the configuration of a running server takes effect as a whole, or not at all.

use std::net::{TcpListener, TcpStream};
use std::path::Path;

use smbeam_server::config::Config;
use smbeam_server::{Accounts, Server};

fn parse(text: &str) -> Config {
    Config::parse(Path::new("/smbeam.toml"), text).expect("a good configuration")
}

/// A server on loopback, with these lines below `[server]`.
fn text(port: u16, rest: &str) -> String {
    format!(
        "[server]\nlisten = [\"127.0.0.1\"]\nworkers = 2\ntransports = [\"tcp:{port}\"]\n{rest}"
    )
}

fn start(text: &str) -> Server {
    let config = parse(text);
    let accounts = Accounts::from_config(&config).expect("no file");
    Server::start(&config, accounts).expect("a server")
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn is_listened_on(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Waits until the workers have closed an address. They do it soon after the change.
fn wait_until_closed(port: u16) {
    while is_listened_on(port) {
        std::thread::yield_now();
    }
}

#[test]
fn changes_are_named_and_addresses_move() {
    let server = start(&text(0, ""));
    let first = server.listening()[0].address.port();
    let port = free_port();
    let config = parse(&text(
        port,
        "io = \"epoll\"\n[limits]\nopens_per_user = 7\n",
    ));
    let reloaded = server.reloader().reload(&config).expect("applied");
    assert_eq!(
        reloaded.applied,
        ["limits.opens_per_user", "server.transports"]
    );
    assert_eq!(reloaded.restart, ["server.io"]);
    assert_eq!(server.listening().len(), 1);
    assert!(is_listened_on(port));
    wait_until_closed(first);
    // Nothing has changed since, but the restart is still needed.
    let again = server.reloader().reload(&config).expect("applied");
    assert!(again.applied.is_empty());
    assert_eq!(again.restart, ["server.io"]);
    assert!(is_listened_on(port));
    server.stop();
}

#[test]
fn the_audit_log_moves_and_a_bad_one_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(&text(0, ""));
    let of = |name: &str| {
        let path = directory.path().join(name);
        let audit = format!("[audit]\ntarget = \"{}\"\n", path.display());
        (path, parse(&text(0, &audit)))
    };
    let (path, config) = of("missing/audit.jsonl");
    let error = server.reloader().reload(&config).expect_err("no directory");
    let expected = format!(
        "/smbeam.toml, line 6: cannot open the audit log (audit.target): {}: No such file",
        path.display()
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
    for name in ["one", "two"] {
        let (path, config) = of(name);
        let reloaded = server.reloader().reload(&config).expect("applied");
        assert_eq!(reloaded.applied, ["audit.target"]);
        assert!(path.is_file());
        let audit = server
            .observer()
            .status(None)
            .server
            .audit
            .expect("an audit log");
        assert_eq!(audit.target, path.display().to_string());
        assert_eq!((audit.written, audit.lost), (0, 0));
    }
    let off = parse(&text(0, ""));
    server.reloader().reload(&off).expect("applied");
    assert_eq!(server.observer().status(None).server.audit, None);
    server.stop();
}

#[test]
fn a_change_that_fails_leaves_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(&text(0, ""));
    let before = server.listening();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let other = free_port();
    let share = format!(
        "[[share]]\nname = \"a\"\npath = \"{}\"\n",
        directory.path().display()
    );
    let both = format!(
        "[server]\nlisten = [\"127.0.0.1\"]\nworkers = 2\n\
         transports = [\"tcp:{other}\",\n\"nbt:{port}\"]\n{share}"
    );
    let error = server
        .reloader()
        .reload(&parse(&both))
        .expect_err("a used port")
        .to_string();
    let expected = "/smbeam.toml, line 4: cannot listen on 127.0.0.1:";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(server.listening(), before);
    assert!(is_listened_on(before[0].address.port()));
    wait_until_closed(other);

    let missing = text(0, "[[share]]\nname = \"a\"\npath = \"/nosuch/directory\"\n");
    let error = server
        .reloader()
        .reload(&parse(&missing))
        .expect_err("no directory")
        .to_string();
    let expected = "/smbeam.toml, line 7: cannot open share \"a\": /nosuch/directory: No such file";
    assert!(error.starts_with(expected), "{error}");
    let users = text(0, "users = \"/nosuch/users.toml\"\n");
    let error = server
        .reloader()
        .reload(&parse(&users))
        .expect_err("no file")
        .to_string();
    assert!(error.starts_with("/smbeam.toml, line 5: "), "{error}");

    // The share is still new.
    let good = text(0, &share);
    let reloaded = server.reloader().reload(&parse(&good)).expect("applied");
    assert_eq!(reloaded.applied, ["share \"a\" (added)"]);
    let reloaded = server
        .reloader()
        .reload(&parse(&text(0, "")))
        .expect("applied");
    assert_eq!(reloaded.applied, ["share \"a\" (removed)"]);
    assert_eq!(server.listening(), before);
    server.stop();
}

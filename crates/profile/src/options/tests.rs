use std::time::Duration;

use smbeam_client::tls::Trust;
use smbeam_client::{Channels, Dialect, Protection, Transports};

use super::{ConnectOptions, OptionError};

fn set(options: &[(&str, &str)]) -> Result<ConnectOptions, OptionError> {
    let mut all = ConnectOptions::default();
    for (name, value) in options {
        all.set(name, value)?;
    }
    Ok(all)
}

fn arguments(list: &[&str]) -> Result<ConnectOptions, OptionError> {
    let mut options = ConnectOptions::default();
    options.set_arguments(list).map(|()| options)
}

#[test]
fn options_have_their_values() {
    let options = set(&[
        ("channels", "4"),
        ("transports", "auto"),
        ("seal", ""),
        ("rdma", "emulated:/run/x"),
        ("rdma-threshold", "8k"),
        ("rdma_busy_poll", "50"),
        ("no_leases", "yes"),
        ("no-durable", "true"),
        ("no_posix", "off"),
        ("max_protocol", "3.0"),
        ("io_size", "64k"),
        ("depth", "8"),
        ("timeout", "2.5"),
        ("guest", "1"),
    ]);
    let options = options.expect("options").build().expect("good options");
    assert_eq!(options.channels, Channels::Exactly(4));
    assert_eq!(options.transports, Transports::Auto);
    assert_eq!(options.protection, Protection::Encrypt);
    assert_eq!(options.rdma, "emulated:/run/x".parse().expect("a provider"));
    assert_eq!(options.rdma_threshold, 8192);
    assert_eq!(options.rdma_busy_poll, Duration::from_micros(50));
    assert!(!options.leases && !options.durable && options.posix);
    let dialects = [Dialect::SMB_2_0_2, Dialect::SMB_2_1, Dialect::SMB_3_0];
    assert_eq!(options.dialects, dialects);
    assert_eq!((options.io_size, options.depth), (65_536, 8));
    let limit = Duration::from_millis(2500);
    assert_eq!(options.request_timeout, Some(limit));
    assert_eq!(
        (options.connect_timeout, options.login_timeout),
        (limit, limit)
    );
    assert!(options.allow_guest);
}

#[test]
fn a_time_limit_of_zero_is_none_for_responses() {
    let options = set(&[("timeout", "0")]).expect("options");
    let options = options.build().expect("good options");
    assert_eq!(options.request_timeout, None);
    assert!(!options.connect_timeout.is_zero() && !options.login_timeout.is_zero());
}

#[test]
fn wrong_names_and_values_are_named() {
    let error = set(&[("chanels", "4")]).expect_err("no option");
    assert_eq!(error, OptionError::Unknown("chanels".to_owned()));
    for (name, value) in [
        ("channels", "0"),
        ("transports", "udp"),
        ("tcp", "x"),
        ("quic", "datagram=1"),
        ("rdma", "x"),
        ("encrypt", "maybe"),
        ("rdma_threshold", "5G"),
        ("rdma_busy_poll", "10001"),
        ("dialect", "1.0"),
        ("io_size", "1"),
        ("depth", "0"),
        ("depth", "1025"),
        ("timeout", "-1"),
        ("ca_file", ""),
        ("pin_sha256", "abcd"),
    ] {
        let error = set(&[(name, value)]).expect_err(name).to_string();
        let start = format!("connection option {name}={value}: ");
        assert!(
            error.starts_with(&start) && error.len() > start.len(),
            "{error}"
        );
    }
}

#[test]
fn every_name_is_an_option() {
    for name in ConnectOptions::names() {
        let known = ["yes", "auto", "3.0", "verbs", "tcp", "delay", "7", "9k"];
        let pin = "ab".repeat(32);
        let quic = "datagram=1400";
        let mut values = known.into_iter().chain([quic, pin.as_str()]);
        let mut options = ConnectOptions::default();
        let before = format!("{options:?}");
        let is_set = values
            .any(|value| options.set(name, value).is_ok() && format!("{options:?}") != before);
        assert!(is_set, "{name} changes nothing");
    }
}

#[test]
fn some_options_exclude_each_other() {
    let pin = "ab".repeat(32);
    for pair in [
        [("sign", ""), ("encrypt", "")],
        [("transport_security", ""), ("encrypt", "")],
        [("dialect", "3.0"), ("max_protocol", "3.0")],
        [("ca_file", "ca.pem"), ("pin_sha256", &pin)],
        [("ca_file", "ca.pem"), ("insecure", "")],
        [("pin_sha256", &pin), ("insecure", "")],
        [("anonymous", ""), ("guest", "")],
        [("anonymous", ""), ("user", "x")],
        [("guest", ""), ("password_file", "x")],
    ] {
        let error = set(&pair)
            .expect("each is good")
            .build()
            .expect_err("not both");
        assert_eq!(error, OptionError::Conflict(pair[0].0, pair[1].0));
    }
    let error = set(&[("client_key", "k")]).expect("good").build();
    assert_eq!(
        error.expect_err("no certificate"),
        OptionError::Requires("client_key", "client_cert")
    );
    let undone = set(&[("sign", ""), ("encrypt", ""), ("sign", "no")]).expect("good");
    assert_eq!(
        undone.build().expect("good").protection,
        Protection::Encrypt
    );
}

#[test]
fn pins_add_up_and_a_certificate_may_hold_its_key() {
    let (one, other) = ("ab".repeat(32), "cd".repeat(32));
    let options = set(&[
        ("pin_sha256", &one),
        ("pin_sha256", &other),
        ("client_cert", "a.pem"),
        ("allow_address", ""),
    ]);
    let tls = options.expect("options").build().expect("good options").tls;
    assert!(matches!(&tls.trust, Trust::Pinned(pins) if pins.len() == 2));
    assert!(tls.allow_address);
    let identity = tls.identity.expect("an identity");
    assert_eq!(identity.key, identity.certificate);
}

#[test]
fn options_of_a_remote_have_the_form_of_the_command_line() {
    let options = arguments(&[
        "--channels=2",
        "--transports",
        "quic,tcp",
        "--encrypt",
        "-vv",
        "--log-level",
        "debug",
        "--verbose",
        "-U",
        "W\\alice",
        "--password-file=p",
    ]);
    let options = options.expect("options");
    assert_eq!(options.channels, Channels::Exactly(2));
    assert_ne!(options.transports, Transports::default());
    assert!(options.encrypt);
    assert_eq!(options.login.user.as_deref(), Some("W\\alice"));
    assert_eq!(options.login.password_file, Some("p".into()));
    for attached in ["-Ubob", "-U=bob"] {
        let options = arguments(&[attached]).expect("a user");
        assert_eq!(options.login.user.as_deref(), Some("bob"));
    }
}

#[test]
fn arguments_that_are_no_options_are_refused() {
    let argument = |text: &str| OptionError::Argument(text.to_owned());
    assert_eq!(arguments(&["file"]).expect_err("a file"), argument("file"));
    assert_eq!(arguments(&["-"]).expect_err("a file"), argument("-"));
    let error = arguments(&["--jobs=3"]).expect_err("no connection option");
    assert_eq!(error, OptionError::Unknown("jobs".to_owned()));
    let error = arguments(&["--sign", "--channels"]).expect_err("no value");
    assert_eq!(error, OptionError::NoValue("channels".to_owned()));
}

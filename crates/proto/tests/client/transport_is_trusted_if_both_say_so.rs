//! SMB2_TRANSPORT_CAPABILITIES: when a client leaves sealing to its transport.

use proto::carrier::Carrier;
use proto::client::config::Protection;
use proto::client::{Config, Role, Violation};

use crate::harness::Rig;
use crate::link::{Link, config};

fn sealing() -> Rig {
    Rig::new(|config| {
        config.encryption_required = true;
        config.transport_security = true;
    })
}

fn trusting() -> Config {
    Config {
        transport_security: true,
        ..config()
    }
}

fn logged_in(rig: &mut Rig, carrier: Carrier, config: Config) -> Link {
    let mut link = Link::over(rig, carrier, config, Role::First);
    link.run(rig);
    assert_eq!(link.ended, None);
    link
}

#[test]
fn nothing_is_sealed_where_the_transport_does_it() {
    let mut rig = sealing();
    let mut link = logged_in(&mut rig, Carrier::QUIC, trusting());
    let session = link.session.clone().expect("it is there");
    assert!(session.negotiated.transport_security && !session.encrypt);
    let tree = link.enter(&mut rig, "files");
    let file = link.open(&mut rig, tree, "a");
    link.write(&mut rig, tree, file, 0, b"abc")
        .expect("it writes");
}

#[test]
fn everything_is_sealed_where_it_does_not() {
    let seals = Config {
        protection: Protection::Encrypt,
        ..trusting()
    };
    for (carrier, config) in [
        (Carrier::TCP, trusting()),
        (Carrier::QUIC, config()),
        (Carrier::QUIC, seals),
    ] {
        let mut rig = sealing();
        let link = logged_in(&mut rig, carrier, config);
        let session = link.session.expect("it is there");
        assert!(session.encrypt && !session.negotiated.transport_security);
    }
}

/// What the one leaves to its transport the other would say in the clear.
#[test]
fn a_channel_without_it_does_not_join() {
    let mut rig = sealing();
    let first = logged_in(&mut rig, Carrier::QUIC, trusting());
    let session = first.session.clone().expect("it is there");
    let role = || Role::Binding(session.clone());
    let mut other = Link::over(&mut rig, Carrier::TCP, trusting(), role());
    other.run(&mut rig);
    assert_eq!(
        other.ended,
        Some(Violation::NegotiateTampered(
            "a channel negotiated other values than its session"
        ))
    );
    let mut same = Link::over(&mut rig, Carrier::QUIC, trusting(), role());
    same.run(&mut rig);
    assert_eq!(same.ended, None);
}

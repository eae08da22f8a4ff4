//! SMB2_TRANSPORT_CAPABILITIES: when the security of the transport replaces encryption.

use std::sync::Arc;

use proto::carrier::Carrier;
use proto::server::config::{Config, Share};
use wire::dialect::Dialect;
use wire::negotiate;
use wire::negotiate_context::{ContextType, Transport, TransportFlags};
use wire::tree_connect::{Response, ShareFlags};
use wire::{Command, Status};

use crate::harness::{Answer, Client, Options, Rig, multichannel, share};

fn with_transport_security() -> Options {
    Options {
        transport_security: true,
        ..multichannel(Dialect::SMB_3_1_1)
    }
}

/// A server with required encryption, and one share that requires it as well.
fn rig(change: impl FnOnce(&mut Config)) -> Rig {
    Rig::new(|config| {
        config.transport_security = true;
        config.shares.push(Arc::new(Share {
            encryption_required: true,
            ..share("secret")
        }));
        change(config);
    })
}

fn encrypting() -> Rig {
    rig(|config| config.encryption_required = true)
}

fn client(rig: &mut Rig, carrier: Carrier, options: Options) -> Client {
    let id = rig.accept_over(carrier);
    let mut client = Client::on(id, options);
    assert_eq!(client.negotiate(rig).status(), Status::SUCCESS);
    assert_eq!(client.log_in(rig, "alice").status(), Status::SUCCESS);
    client
}

fn answered(answer: &Answer) -> Option<TransportFlags> {
    let response = negotiate::Response::decode(&answer.message).expect("a response");
    let mut contexts = response.contexts.iter();
    let found = contexts.find(|it| it.context_type == ContextType::TRANSPORT_CAPABILITIES)?;
    Some(Transport::decode(found.data).expect("flags").flags)
}

#[test]
fn it_needs_the_transport_the_client_and_the_configuration() {
    let accepted = Some(TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY);
    for (carrier, is_allowed, is_asked, expected) in [
        (Carrier::QUIC, true, true, accepted),
        (Carrier::TCP, true, true, None),
        (Carrier::NBT, true, true, None),
        (Carrier::QUIC, false, true, None),
        (Carrier::QUIC, true, false, None),
    ] {
        let mut rig = rig(|config| config.transport_security = is_allowed);
        let id = rig.accept_over(carrier);
        let options = Options {
            transport_security: is_asked,
            ..Options::default()
        };
        let mut client = Client::on(id, options);
        let answer = client.negotiate(&mut rig);
        assert_eq!(answered(&answer), expected, "{carrier:?} {is_allowed}");
    }
}

#[test]
fn the_transport_satisfies_required_encryption() {
    let mut rig = encrypting();
    let mut client = client(&mut rig, Carrier::QUIC, with_transport_security());
    assert!(!client.encrypts, "the server does not require it");
    for name in ["files", "secret"] {
        client.signs = true;
        let answer = client.enter(&mut rig, name);
        assert_eq!(answer.status(), Status::SUCCESS);
        let flags = Response::decode(&answer.message).expect("one").share_flags;
        assert!(!flags.contains(ShareFlags::ENCRYPT_DATA));
        client.signs = false;
        client.create(&mut rig, "a");
    }
    // The server accepts encrypted frames all the same.
    client.encrypts = true;
    assert!(client.echo(&mut rig).was_encrypted);
}

#[test]
fn encryption_stays_required_without_agreement() {
    for (carrier, options) in [
        (Carrier::QUIC, Options::default()),
        (Carrier::TCP, with_transport_security()),
        (
            Carrier::QUIC,
            Options {
                dialects: vec![Dialect::SMB_3_0_2],
                ..with_transport_security()
            },
        ),
    ] {
        let mut rig = encrypting();
        let mut client = client(&mut rig, carrier, options);
        assert!(client.encrypts);
        client.encrypts = false;
        let answer = client.echo(&mut rig);
        assert_eq!(answer.status(), Status::ACCESS_DENIED);
    }
}

/// The session is the same, but the transport of the second channel is another.
#[test]
fn a_further_channel_on_another_transport_must_encrypt() {
    let mut rig = encrypting();
    let mut first = client(&mut rig, Carrier::QUIC, with_transport_security());
    first.signs = true;
    assert_eq!(first.enter(&mut rig, "files").status(), Status::SUCCESS);
    let mut second = Client::channel_of(&mut rig, &first);
    second.encrypts = false;
    let answer = second.echo(&mut rig);
    assert_eq!(answer.status(), Status::ACCESS_DENIED);
    let message = second.create_message("a");
    let refused = second.ask(&mut rig, message);
    assert_eq!(refused.status(), Status::ACCESS_DENIED);
    assert_eq!(first.echo(&mut rig).status(), Status::SUCCESS);
}

#[test]
fn an_invalid_context_is_refused() {
    let mut rig = encrypting();
    for contexts in [
        vec![vec![1, 0, 0]],
        vec![vec![1, 0, 0, 0], vec![1, 0, 0, 0]],
    ] {
        let id = rig.accept_over(Carrier::QUIC);
        let mut client = Client::on(id, Options::default());
        let bytes = client.negotiate_bytes_with(ContextType::TRANSPORT_CAPABILITIES, &contexts);
        let answer = client.ask_body(&mut rig, Command::NEGOTIATE, bytes);
        assert_eq!(answer.status(), Status::INVALID_PARAMETER);
    }
}

//! A client binds a connection to a session only with the session's key and as the session's user.

use crypto::{Cipher, SigningAlgorithm};
use wire::dialect::{Capabilities, Dialect};
use wire::{Flags, SessionId, Status, negotiate};

use crate::harness::{Client, Options, Rig, multichannel};

const DIALECTS: [Dialect; 3] = [Dialect::SMB_3_0, Dialect::SMB_3_0_2, Dialect::SMB_3_1_1];

fn rig_and_client(dialect: Dialect) -> (Rig, Client) {
    let mut rig = Rig::new(|_| {});
    let client = Client::in_share(&mut rig, multichannel(dialect), "alice", "files");
    (rig, client)
}

/// The status of an attempt to bind a connection with these options.
fn bound(rig: &mut Rig, first: &Client, options: Options) -> Status {
    let mut channel = Client::new(rig, options);
    channel.negotiate(rig);
    channel.knows(first);
    let status = channel.log_in_bound(rig, first, "alice").status();
    let sessions = rig.connection(channel.id).summary().sessions;
    assert_eq!(sessions.len(), usize::from(status == Status::SUCCESS));
    status
}

#[test]
fn a_bound_connection_has_a_separate_signing_key() {
    for dialect in DIALECTS {
        let (mut rig, first) = rig_and_client(dialect);
        let mut channel = Client::beside(&mut rig, &first);
        let leg = channel.log_in_bound(&mut rig, &first, "more");
        assert_eq!(leg.status(), Status::MORE_PROCESSING_REQUIRED);
        let last = channel.log_in_bound(&mut rig, &first, "alice");
        assert_eq!(last.status(), Status::SUCCESS);
        // The client checks the signatures. In 3.1.1 the keys of channel and session differ.
        assert_eq!(channel.echo(&mut rig).status(), Status::SUCCESS);
        let file = channel.create(&mut rig, "a");
        assert_eq!(channel.close(&mut rig, file), Status::SUCCESS);
        channel.signing.clone_from(&first.signing);
        if dialect == Dialect::SMB_3_1_1 {
            let message = channel.close_message(file);
            let frame = channel.frame(vec![message]);
            rig.deliver(channel.id, &frame);
            channel.signing = None;
            let answer = channel.hear(&mut rig).expect("an answer").remove(0);
            assert_eq!(answer.status(), Status::ACCESS_DENIED);
        }
    }
}

#[test]
fn all_channels_encrypt_with_the_keys_of_the_session() {
    for dialect in DIALECTS {
        let (mut rig, mut first) = rig_and_client(dialect);
        first.encrypts = true;
        let mut channel = Client::channel_of(&mut rig, &first);
        let file = first.create(&mut rig, "a");
        assert_eq!(channel.close(&mut rig, file), Status::SUCCESS);
        assert_eq!(first.echo(&mut rig).status(), Status::SUCCESS);
    }
}

#[test]
fn another_user_or_a_wrong_key_cannot_bind() {
    let (mut rig, mut first) = rig_and_client(Dialect::SMB_3_1_1);
    for (token, expected) in [
        ("mallory", Status::ACCESS_DENIED),
        ("guest", Status::ACCESS_DENIED),
        ("anonymous", Status::ACCESS_DENIED),
        ("refuse", Status::LOGON_FAILURE),
    ] {
        let mut channel = Client::beside(&mut rig, &first);
        let answer = channel.log_in_bound(&mut rig, &first, token);
        assert_eq!(answer.status(), expected, "{token}");
        assert_eq!(
            channel.echo(&mut rig).status(),
            Status::USER_SESSION_DELETED
        );
    }
    let mut channel = Client::beside(&mut rig, &first);
    let mut message = channel.binding("alice");
    channel.signs = false;
    let unsigned = channel.ask(&mut rig, message.clone());
    assert_eq!(unsigned.status(), Status::INVALID_PARAMETER);
    message.header.message_id.0 += 1;
    message.header.flags |= Flags::SIGNED;
    message.header.signature = [7; 16];
    let forged = channel.ask(&mut rig, message);
    assert_eq!(forged.status(), Status::ACCESS_DENIED);
    // None of these attempts harms the session.
    assert_eq!(first.echo(&mut rig).status(), Status::SUCCESS);
}

#[test]
fn every_leg_of_a_binding_needs_the_binding_flag() {
    let (mut rig, first) = rig_and_client(Dialect::SMB_3_1_1);
    let mut channel = Client::beside(&mut rig, &first);
    channel.log_in_bound(&mut rig, &first, "more");
    let other = channel.setup("alice", SessionId(0));
    let answer = channel.ask(&mut rig, other);
    assert_eq!(answer.status(), Status::REQUEST_NOT_ACCEPTED);
    assert_eq!(rig.connection(channel.id).summary().sessions, []);
}

#[test]
fn a_bound_connection_must_negotiate_the_same_options() {
    let (mut rig, first) = rig_and_client(Dialect::SMB_3_1_1);
    let options = || multichannel(Dialect::SMB_3_1_1);
    for dialect in [Dialect::SMB_3_0, Dialect::SMB_3_0_2] {
        let status = bound(&mut rig, &first, multichannel(dialect));
        assert_eq!(status, Status::REQUEST_OUT_OF_SEQUENCE, "GMAC is no more");
    }
    let cmac = Options {
        signing: vec![SigningAlgorithm::AesCmac],
        ..options()
    };
    let gcm_less = Options {
        ciphers: vec![Cipher::Aes128Ccm],
        ..options()
    };
    let status = bound(&mut rig, &first, cmac.clone());
    assert_eq!(status, Status::REQUEST_OUT_OF_SEQUENCE);
    let status = bound(&mut rig, &first, gcm_less);
    assert_eq!(status, Status::INVALID_PARAMETER);
    assert_eq!(bound(&mut rig, &first, options()), Status::SUCCESS);
    let mut first = Client::in_share(&mut rig, cmac, "alice", "files");
    let status = bound(&mut rig, &first, options());
    assert_eq!(status, Status::NOT_SUPPORTED);
    let status = bound(&mut rig, &first, multichannel(Dialect::SMB_3_0));
    assert_eq!(status, Status::INVALID_PARAMETER);
    let status = bound(&mut rig, &first, Options::only(Dialect::SMB_2_1));
    assert_eq!(status, Status::REQUEST_NOT_ACCEPTED);
    assert_eq!(first.echo(&mut rig).status(), Status::SUCCESS);
}

#[test]
fn a_session_without_keys_cannot_be_bound() {
    let mut rig = Rig::new(|config| {
        let mut open = crate::harness::share("open");
        open.guest = true;
        config.shares.push(std::sync::Arc::new(open));
    });
    let guest = Client::logged_in(&mut rig, Options::default(), "guest");
    let mut channel = Client::new(&mut rig, Options::default());
    channel.negotiate(&mut rig);
    channel.session = guest.session;
    let mut message = channel.binding("guest");
    message.header.flags |= Flags::SIGNED;
    let answer = channel.ask(&mut rig, message);
    assert_eq!(answer.status(), Status::NOT_SUPPORTED);
}

#[test]
fn channels_are_limited_and_can_be_turned_off() {
    let mut rig = Rig::new(|config| config.limits.channels_per_session = 3);
    let options = multichannel(Dialect::SMB_3_1_1);
    let first = Client::in_share(&mut rig, options.clone(), "alice", "files");
    let second = Client::channel_of(&mut rig, &first);
    let mut third = Client::channel_of(&mut rig, &first);
    let status = bound(&mut rig, &first, options.clone());
    assert_eq!(status, Status::INSUFFICIENT_RESOURCES);
    // A connection cannot bind twice. The request is signed with the key of the channel.
    let again = third.binding("alice");
    let answer = third.ask(&mut rig, again);
    assert_eq!(answer.status(), Status::REQUEST_NOT_ACCEPTED);
    rig.cut(second.id);
    assert_eq!(bound(&mut rig, &first, options.clone()), Status::SUCCESS);

    let mut rig = Rig::new(|config| config.multichannel = false);
    let mut first = Client::new(&mut rig, options.clone());
    let answer = first.negotiate(&mut rig);
    let response = negotiate::Response::decode(&answer.message).expect("a response");
    assert!(!response.capabilities.contains(Capabilities::MULTI_CHANNEL));
    first.log_in(&mut rig, "alice");
    let status = bound(&mut rig, &first, options);
    assert_eq!(status, Status::REQUEST_NOT_ACCEPTED);
}

#[test]
fn multichannel_is_offered_on_request() {
    let is_offered = |options: Options| {
        let mut rig = Rig::new(|_| {});
        let mut client = Client::new(&mut rig, options);
        let answer = client.negotiate(&mut rig);
        let response = negotiate::Response::decode(&answer.message).expect("a response");
        response.capabilities.contains(Capabilities::MULTI_CHANNEL)
    };
    for dialect in DIALECTS {
        assert!(is_offered(multichannel(dialect)));
        assert!(!is_offered(Options::only(dialect)));
    }
    assert!(!is_offered(multichannel(Dialect::SMB_2_1)));
}

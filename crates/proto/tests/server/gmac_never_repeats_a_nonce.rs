//! The server's protection of sessions of several channels where AES-GMAC is the best algorithm.

use crypto::SigningAlgorithm;
use proto::server::GmacChannels;
use wire::dialect::{Capabilities, Dialect};
use wire::session_setup::{Response, SessionFlags};
use wire::{Command, Flags, SessionId, Status};

use crate::harness::{Client, Options, Rig, multichannel};

fn rig(policy: GmacChannels) -> Rig {
    Rig::new(|config| config.gmac_channels = policy)
}

fn offering(signing: &[SigningAlgorithm]) -> Options {
    Options {
        signing: signing.to_vec(),
        ..multichannel(Dialect::SMB_3_1_1)
    }
}

/// Logs in. Returns the client and whether the session is encrypted.
fn log_in(rig: &mut Rig, options: Options) -> (Client, bool) {
    let mut client = Client::new(rig, options);
    assert_eq!(client.negotiate(rig).status(), Status::SUCCESS);
    let answer = client.log_in(rig, "alice");
    assert_eq!(answer.status(), Status::SUCCESS);
    let response = Response::decode(&answer.message).expect("a response");
    let encrypts = response.flags.contains(SessionFlags::ENCRYPT_DATA);
    client.encrypts = encrypts;
    (client, encrypts)
}

/// Sends a leg of a binding with the key of the session. Returns the status, and whether the answer
/// is signed.
fn bind(rig: &mut Rig, channel: &mut Client, token: &str) -> (Status, bool) {
    let message = channel.binding(token);
    let frame = channel.frame(vec![message]);
    rig.deliver(channel.id, &frame);
    let key = channel.signing.take();
    let answer = channel.hear(rig).expect("an answer").remove(0);
    channel.signing = key;
    (answer.status(), answer.is_signed())
}

const GMAC: SigningAlgorithm = SigningAlgorithm::AesGmac;
const CMAC: SigningAlgorithm = SigningAlgorithm::AesCmac;

#[test]
fn the_session_is_encrypted_by_default() {
    let mut rig = rig(GmacChannels::Encrypt);
    let (mut first, encrypts) = log_in(&mut rig, offering(&[GMAC, CMAC]));
    assert!(encrypts);
    assert_eq!(first.signing_algorithm, CMAC);
    assert_eq!(first.echo(&mut rig).status(), Status::SUCCESS);
    let mut channel = Client::channel_of(&mut rig, &first);
    assert_eq!(channel.echo(&mut rig).status(), Status::SUCCESS);
    // Nothing else is accepted with a signature alone.
    first.encrypts = false;
    first.signs = true;
    assert_eq!(first.echo(&mut rig).status(), Status::ACCESS_DENIED);
    let again = first.setup("alice", SessionId(0));
    assert_eq!(first.ask(&mut rig, again).status(), Status::SUCCESS);
}

#[test]
fn a_client_without_ciphers_is_signed_with_cmac() {
    let mut rig = rig(GmacChannels::Encrypt);
    let options = Options {
        ciphers: Vec::new(),
        ..offering(&[GMAC, CMAC])
    };
    let (client, encrypts) = log_in(&mut rig, options);
    assert!(!encrypts);
    assert_eq!(client.signing_algorithm, CMAC);
}

#[test]
fn a_client_of_one_channel_keeps_gmac() {
    for policy in [GmacChannels::Encrypt, GmacChannels::Cmac] {
        let mut rig = rig(policy);
        let options = Options {
            signing: vec![GMAC, CMAC],
            ..Options::default()
        };
        let (client, encrypts) = log_in(&mut rig, options);
        assert!(!encrypts);
        assert_eq!(client.signing_algorithm, GMAC);
    }
}

#[test]
fn with_the_policy_cmac_nothing_is_encrypted() {
    let mut rig = rig(GmacChannels::Cmac);
    let (first, encrypts) = log_in(&mut rig, offering(&[GMAC, CMAC]));
    assert!(!encrypts);
    assert_eq!(first.signing_algorithm, CMAC);
    Client::channel_of(&mut rig, &first);
}

#[test]
fn with_the_policy_single_a_binding_is_refused_unsigned() {
    let mut rig = rig(GmacChannels::Single);
    let mut first = Client::new(&mut rig, offering(&[GMAC, CMAC]));
    let answer = first.negotiate(&mut rig);
    let response = wire::negotiate::Response::decode(&answer.message).expect("a response");
    assert!(!response.capabilities.contains(Capabilities::MULTI_CHANNEL));
    assert_eq!(first.log_in(&mut rig, "alice").status(), Status::SUCCESS);
    assert_eq!(first.signing_algorithm, GMAC);
    let mut channel = Client::beside(&mut rig, &first);
    let refused = bind(&mut rig, &mut channel, "alice");
    assert_eq!(refused, (Status::REQUEST_NOT_ACCEPTED, false));
}

#[test]
fn an_unverified_binding_is_refused_unsigned() {
    for policy in [GmacChannels::Encrypt, GmacChannels::Allow] {
        let mut rig = rig(policy);
        let (first, _) = log_in(&mut rig, offering(&[GMAC, CMAC]));
        let mut channel = Client::beside(&mut rig, &first);
        let mut message = channel.binding("alice");
        channel.signs = false;
        message.header.flags |= Flags::SIGNED;
        message.header.signature = [7; 16];
        channel.signing = None;
        let answer = channel.ask(&mut rig, message);
        assert_eq!(answer.status(), Status::ACCESS_DENIED);
        assert!(!answer.is_signed());
    }
}

#[test]
fn a_client_of_gmac_alone_has_one_channel_without_encryption() {
    for policy in [GmacChannels::Encrypt, GmacChannels::Cmac] {
        let mut rig = rig(policy);
        let (mut first, encrypts) = log_in(&mut rig, offering(&[GMAC]));
        assert!(!encrypts);
        assert_eq!(first.signing_algorithm, GMAC);
        assert_eq!(first.echo(&mut rig).status(), Status::SUCCESS);
        for token in ["alice", "more", "refuse"] {
            let mut channel = Client::beside(&mut rig, &first);
            let refused = bind(&mut rig, &mut channel, token);
            assert_eq!(refused, (Status::REQUEST_NOT_ACCEPTED, false));
        }
    }
}

#[test]
fn a_verified_binding_is_signed() {
    // AES-CMAC has no nonces. With the policy "allow" AES-GMAC repeats them, as on other servers.
    let policies = [
        (GmacChannels::Encrypt, CMAC),
        (GmacChannels::Cmac, CMAC),
        (GmacChannels::Allow, GMAC),
    ];
    for (policy, algorithm) in policies {
        let mut rig = rig(policy);
        let (first, _) = log_in(&mut rig, offering(&[GMAC, CMAC]));
        assert_eq!(first.signing_algorithm, algorithm);
        for _ in 0..2 {
            let mut channel = Client::beside(&mut rig, &first);
            let leg = bind(&mut rig, &mut channel, "more");
            assert_eq!(leg, (Status::MORE_PROCESSING_REQUIRED, true));
            let refusal = bind(&mut rig, &mut channel, "refuse");
            assert_eq!(refusal, (Status::LOGON_FAILURE, true));
        }
    }
}

#[test]
fn a_login_again_on_a_further_channel_is_signed_with_its_own_key() {
    let mut rig = rig(GmacChannels::Allow);
    let (first, _) = log_in(&mut rig, offering(&[GMAC]));
    let mut channel = Client::channel_of(&mut rig, &first);
    let again = channel.setup("alice", SessionId(0));
    // The harness checks the signature with the key of the channel.
    let answer = channel.ask(&mut rig, again);
    assert_eq!(answer.status(), Status::SUCCESS);
    assert!(answer.is_signed());
    assert_ne!(answer.header.session_id, SessionId(0));
    assert_eq!(answer.header.command, Command::SESSION_SETUP);
}

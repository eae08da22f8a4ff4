//! Required and optional signatures, and the handling of wrong ones. Row 34 of the list of bad
//! inputs, and the first entry of the bugs that other servers fixed.

use crypto::SigningAlgorithm;
use proto::violation::Violation;
use wire::dialect::{Dialect, SecurityMode};
use wire::{Command, Flags, SessionId, Status};

use crate::harness::{Answer, Client, Options, Rig, bytes_of};

fn required_by_client() -> Options {
    Options {
        security_mode: SecurityMode::SIGNING_ENABLED | SecurityMode::SIGNING_REQUIRED,
        ..Options::default()
    }
}

#[test]
fn unsigned_requests_are_refused_if_either_peer_requires_signing() {
    let by_server = Rig::new(|config| config.signing_required = true);
    let by_client = Rig::new(|_| {});
    for (mut rig, options) in [
        (by_server, Options::default()),
        (by_client, required_by_client()),
    ] {
        for dialect in [
            Dialect::SMB_2_0_2,
            Dialect::SMB_2_1,
            Dialect::SMB_3_0,
            Dialect::SMB_3_1_1,
        ] {
            let dialects = vec![dialect];
            let options = Options {
                dialects,
                ..options.clone()
            };
            let mut client = Client::logged_in(&mut rig, options, "alice");
            client.signs = true;
            assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
            client.signs = false;
            for command in [Command::TREE_DISCONNECT, Command::ECHO, Command::LOGOFF] {
                let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
                let answer = client.ask_body(&mut rig, command, bytes);
                assert_eq!(answer.status(), Status::ACCESS_DENIED);
                assert!(answer.is_signed());
            }
            let again = client.setup("alice", SessionId(0));
            assert_eq!(client.ask(&mut rig, again).status(), Status::ACCESS_DENIED);
            client.signs = true;
            assert_eq!(client.enter(&mut rig, "files").status(), Status::SUCCESS);
        }
    }
}

#[test]
fn an_answer_is_signed_as_its_request_was() {
    for algorithm in [
        SigningAlgorithm::HmacSha256,
        SigningAlgorithm::AesCmac,
        SigningAlgorithm::AesGmac,
    ] {
        let mut rig = Rig::new(|_| {});
        let signing = vec![algorithm];
        let options = Options {
            signing,
            ..Options::default()
        };
        let mut client = Client::in_share(&mut rig, options, "alice", "files");
        assert_eq!(client.signing_algorithm, algorithm);
        assert!(client.echo(&mut rig).is_signed());
        client.signs = false;
        assert!(!client.echo(&mut rig).is_signed());
    }
}

#[test]
fn a_wrong_signature_is_refused() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    for position in [14, 48, 63, 64, 66] {
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        let message = client.message(Command::ECHO, bytes);
        let mut frame = client.frame(vec![message]);
        frame[position] ^= 1;
        rig.deliver(client.id, &frame);
        let answer = client.hear(&mut rig).unwrap().remove(0);
        assert_eq!(answer.status(), Status::ACCESS_DENIED, "{position}");
    }
}

#[test]
fn a_signature_for_no_session_is_refused() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    client.session = SessionId(99);
    let answer = client.echo(&mut rig);
    assert_eq!(answer.status(), Status::USER_SESSION_DELETED);
    let mut fresh = Client::new(&mut rig, Options::default());
    let bytes = fresh.negotiate_bytes();
    let mut message = fresh.message(Command::NEGOTIATE, bytes);
    message.header.flags |= Flags::SIGNED;
    assert_eq!(
        fresh.ask(&mut rig, message).status(),
        Status::INVALID_PARAMETER
    );
}

#[test]
fn an_unsigned_tree_connect_of_3_1_1_ends_the_connection() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    client.signs = false;
    let message = client.connect_message("files");
    client.say(&mut rig, vec![message]);
    let violation = Violation::NotSigned(client.session);
    assert_eq!(rig.violations[&client.id], violation);
}

#[test]
fn every_member_of_a_compound_is_signed_with_its_padding() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::in_share(&mut rig, Options::default(), "alice", "files");
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let mut first = client.message(Command::ECHO, bytes.clone());
    first.header.credits = 8;
    client.ask(&mut rig, first);
    let echoes = |client: &mut Client| -> Vec<_> {
        (0..3)
            .map(|_| client.message(Command::ECHO, bytes.clone()))
            .collect()
    };
    let messages = echoes(&mut client);
    // The client checks each signature, including the padding.
    let answers = client.ask_all(&mut rig, messages);
    assert!(answers.iter().all(Answer::is_signed));
    let messages = echoes(&mut client);
    let mut frame = client.frame(messages);
    frame[70] ^= 1;
    rig.deliver(client.id, &frame);
    let statuses: Vec<_> = client
        .hear(&mut rig)
        .unwrap()
        .iter()
        .map(Answer::status)
        .collect();
    assert_eq!(
        statuses,
        [Status::ACCESS_DENIED, Status::SUCCESS, Status::SUCCESS]
    );
}

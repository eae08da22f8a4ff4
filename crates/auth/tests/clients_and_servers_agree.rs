//! Whole exchanges between the initiator and the acceptor: some must succeed with the same key on
//! both sides, the others must fail.

mod exchange;

use std::sync::Arc;

use exchange::{NOW, accepted, alice, config, entropy, exchange, refused, run};
use smbeam_auth::{
    Acceptor, AcceptorConfig, Account, Credentials, Framing, GuestLogins, Initiator,
    InitiatorError, InitiatorStep, Refusal, Step, UserKind, Users, server_hint,
};
use wire::ntlmssp::{Authenticate, AvFlags, Challenge, Flags, Negotiate, Ntlmv2Response};
use wire::spnego::{HINT_NAME, MechList, NegState, NegTokenInit, NegTokenResp, Oid, Token};

fn first_token(client: &mut Initiator) -> Vec<u8> {
    client.start(NOW, &entropy(0)).expect("a first token")
}

#[test]
fn a_known_user_logs_in_with_the_same_key_on_both_sides() {
    for framing in [Framing::Spnego, Framing::Raw] {
        let client = Initiator::new(alice("secret"), "cifs/files", framing);
        let (client_key, accepted) = accepted(client, &config());
        let client_key = client_key.expect("a named user has a key");
        assert_eq!(client_key, accepted.session_key, "{framing:?}");
        assert_ne!(*accepted.session_key, [0; 16]);
        assert_eq!(accepted.full_session_key[..], accepted.session_key[..]);
        assert_eq!(accepted.user.name, "Alice");
        assert_eq!(accepted.user.unix.as_deref(), Some("alice-unix"));
        assert_eq!(accepted.user.kind, UserKind::Named);
        assert_eq!(accepted.target_name.as_deref(), Some("cifs/files"));
        assert_eq!(accepted.channel_bindings, None);
    }
}

/// [MS-NLMP] 4.2.4.3: the AUTHENTICATE of the example fits the acceptor's CHALLENGE, because both
/// have the same server challenge.
#[test]
fn the_example_of_the_specification_logs_in() {
    let step = answer_example(Flags(0xe288_8235), SPEC_AUTHENTICATE);
    match step {
        Step::Done(accepted) => assert_eq!(*accepted.session_key, [0x55; 16]),
        other => panic!("{other:?}"),
    }
}

/// The names of the example in a code page, as v9u-smb2 sends them. The proof still covers the
/// names in UTF-16.
#[test]
fn a_client_without_unicode_logs_in() {
    let in_oem = |flags: Flags| flags.without(Flags::UNICODE) | Flags::OEM;
    let with_user = |user: &[u8]| {
        let message = Authenticate::decode(SPEC_AUTHENTICATE).expect("the example");
        let token = Authenticate {
            flags: in_oem(message.flags),
            user,
            domain: b"Domain",
            workstation: b"COMPUTER",
            ..message
        };
        answer_example(in_oem(Flags(0xe288_8235)), &token.encode())
    };
    match with_user(b"User") {
        Step::Done(accepted) => assert_eq!(*accepted.session_key, [0x55; 16]),
        other => panic!("{other:?}"),
    }
    assert_eq!(reason(with_user(b"Us\xe9r")), Refusal::Malformed);
}

fn answer_example(flags: Flags, authenticate: &[u8]) -> Step {
    let account = Account::new("user", "Password").expect("a good name");
    let mut users = Users::default();
    users.insert(account);
    let names = config().names.clone();
    let config = AcceptorConfig {
        names,
        users: Arc::new(users),
        allows_anonymous: false,
        guests: GuestLogins::Refused,
        mechanisms: Vec::new(),
    };
    let mut acceptor = Acceptor::new(Arc::new(config));
    let negotiate = Negotiate {
        flags,
        domain: &[],
        workstation: &[],
        version: None,
    };
    let mut entropy = [0; 32];
    entropy[..8].copy_from_slice(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
    let _ = acceptor.step(&negotiate.encode(), NOW, &entropy);
    acceptor.step(authenticate, NOW, &entropy)
}

#[test]
fn names_are_compared_without_case_and_without_their_domain() {
    for name in ["alice", "ALICE", "aLiCe", "alice@example.org"] {
        let client = Credentials::with_password(name, "ANYWHERE", "secret");
        let client = Initiator::new(client, "cifs/files", Framing::Spnego);
        assert_eq!(accepted(client, &config()).1.user.name, "Alice");
    }
}

#[test]
fn sessions_never_share_a_key() {
    let key = |seed| {
        let client = Initiator::new(alice("secret"), "cifs/files", Framing::Spnego);
        match run(client, Acceptor::new(config()), seed, |_, token| token) {
            (_, Step::Done(accepted)) => accepted.session_key,
            other => panic!("{other:?}"),
        }
    };
    assert_ne!(key(1), key(2));
}

#[test]
fn wrong_passwords_and_unknown_users_are_refused() {
    assert_eq!(refused(alice("Secret"), &config()), Refusal::BadPassword);
    let bob = Credentials::with_password("bob", "", "secret");
    assert_eq!(refused(bob, &config()), Refusal::BadUser);
    let carol = Credentials::with_password("carol", "", "secret");
    assert_eq!(refused(carol, &config()), Refusal::Disabled);
    let carol = Credentials::with_password("carol", "", "wrong");
    assert_eq!(refused(carol, &config()), Refusal::BadPassword);
}

#[test]
fn the_claim_is_known_before_the_password_is_checked() {
    let by_name = exchange::config_with(true, GuestLogins::ByName);
    for framing in [Framing::Spnego, Framing::Raw] {
        for (credentials, expected) in [
            (alice("wrong"), ("alice", true)),
            (Credentials::with_password("bob", "", "x"), ("bob", true)),
            (
                Credentials::with_password("guest", "", "x"),
                ("guest", false),
            ),
            (Credentials::Anonymous, ("", false)),
        ] {
            let mut acceptor = Acceptor::new(by_name.clone());
            let mut client = Initiator::new(credentials, "cifs/files", framing);
            let first = first_token(&mut client);
            assert_eq!(acceptor.claim(&first), None);
            let Step::Continue(challenge) = acceptor.step(&first, NOW, &entropy(1)) else {
                panic!("NTLM needs two tokens");
            };
            let Ok(InitiatorStep::Continue(second)) = client.step(&challenge, NOW, &entropy(2))
            else {
                panic!("the client answers the challenge");
            };
            let claim = acceptor.claim(&second).expect("an AUTHENTICATE");
            assert_eq!((&*claim.user, claim.needs_password), expected);
            assert_eq!(acceptor.claim(&second[1..]), None);
        }
    }
}

#[test]
fn anonymous_users_need_permission_and_get_no_key() {
    assert_eq!(
        refused(Credentials::Anonymous, &config()),
        Refusal::Anonymous
    );
    for framing in [Framing::Spnego, Framing::Raw] {
        let client = Initiator::new(Credentials::Anonymous, "cifs/files", framing);
        let (client_key, accepted) =
            accepted(client, &exchange::config_with(true, GuestLogins::Refused));
        assert_eq!(accepted.user.kind, UserKind::Anonymous);
        assert_eq!(*accepted.session_key, [0; 16]);
        assert_eq!(client_key, None, "a public key protects nothing");
    }
}

#[test]
fn guests_need_their_name_or_permission_for_any_name() {
    let by_name = exchange::config_with(false, GuestLogins::ByName);
    for name in ["guest", "GUEST", "Guest@example.org"] {
        let guest = Credentials::with_password(name, "", "arbitrary");
        let guest = Initiator::new(guest, "cifs/files", Framing::Spnego);
        let accepted = accepted(guest, &by_name).1;
        assert_eq!(
            (accepted.user.kind, &*accepted.user.name),
            (UserKind::Guest, name)
        );
    }
    // The server does not show which accounts exist.
    let bob = Credentials::with_password("bob", "", "arbitrary");
    assert_eq!(refused(bob, &by_name), Refusal::BadUser);
    let guest = Credentials::with_password("guest", "", "arbitrary");
    assert_eq!(refused(guest, &config()), Refusal::BadUser);
}

#[test]
fn guests_are_those_without_an_account_and_get_no_key() {
    let config = exchange::config_with(false, GuestLogins::ByUnknownName);
    let bob = Credentials::with_password("bob", "", "arbitrary");
    match exchange(Initiator::new(bob, "cifs/files", Framing::Spnego), &config).1 {
        Step::Done(accepted) => {
            assert_eq!(accepted.user.kind, UserKind::Guest);
            assert_eq!(accepted.user.name, "bob");
            assert_eq!(*accepted.session_key, [0; 16]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(refused(alice("wrong"), &config), Refusal::BadPassword);
    assert_eq!(refused(Credentials::Anonymous, &config), Refusal::Anonymous);
}

#[test]
fn a_server_without_kerberos_asks_for_ntlm_and_for_a_mic() {
    let offer = [Oid::MS_KERBEROS, Oid::KERBEROS, Oid::NTLMSSP];
    let mut client = Initiator::offering(&offer, alice("secret"), "cifs/files", Framing::Spnego);
    let mut acceptor = Acceptor::new(config());
    let Step::Continue(reply) = acceptor.step(&first_token(&mut client), NOW, &entropy(1)) else {
        panic!("NTLM is in the list");
    };
    let Ok(Token::Response(reply)) = Token::decode(&reply) else {
        panic!("{reply:?}")
    };
    assert_eq!(reply.state, Some(NegState::REQUEST_MIC));
    assert_eq!(reply.mechanism, Some(Oid::NTLMSSP));
    assert_eq!(reply.response_token, None);

    let client = Initiator::offering(&offer, alice("secret"), "cifs/files", Framing::Spnego);
    let (key, accepted) = accepted(client, &config());
    assert_eq!(key, Some(accepted.session_key));
}

#[test]
fn an_offer_without_ntlm_is_refused() {
    let offer = [Oid::KERBEROS, Oid::NEGOEX];
    let client = Initiator::offering(&offer, alice("secret"), "cifs/files", Framing::Spnego);
    let (_, step) = exchange(client, &config());
    assert!(
        matches!(
            step,
            Step::Refused {
                reason: Refusal::NoCommonMechanism,
                ..
            }
        ),
        "{step:?}"
    );
}

#[test]
fn an_optimistic_token_of_another_mechanism_is_ignored() {
    let list = MechList::encode(&[Oid::KERBEROS, Oid::NTLMSSP]);
    let offer = NegTokenInit {
        mechanisms: MechList::decode(&list).expect("a list"),
        mech_token: Some(b"an AP-REQ, perhaps"),
        hint_name: None,
        mech_list_mic: None,
    };
    let step = Acceptor::new(config()).step(&offer.encode(), NOW, &entropy(1));
    assert!(matches!(step, Step::Continue(_)), "{step:?}");
}

/// An attacker removes a mechanism from the client's list in transit. The client's mechListMIC
/// covers the sent list; the server verifies it over the received list.
#[test]
fn a_changed_list_of_mechanisms_is_detected() {
    let offer = [Oid::NTLMSSP, Oid::KERBEROS];
    let client = Initiator::offering(&offer, alice("secret"), "cifs/files", Framing::Spnego);
    let step = run(client, Acceptor::new(config()), 1, |leg, token| match leg {
        0 => first_token(&mut Initiator::new(
            alice("secret"),
            "cifs/files",
            Framing::Spnego,
        )),
        _ => token,
    });
    assert_eq!(reason(step.1), Refusal::MechListMicMismatch);
}

#[test]
fn a_missing_mech_list_mic_is_refused_where_it_is_required() {
    let offer = [Oid::KERBEROS, Oid::NTLMSSP];
    let client = Initiator::offering(&offer, alice("secret"), "cifs/files", Framing::Spnego);
    let step = run(client, Acceptor::new(config()), 1, |leg, token| match leg {
        2 => change_mic(&token, |_| None),
        _ => token,
    });
    assert_eq!(reason(step.1), Refusal::MechListMicMismatch);
}

#[test]
fn every_changed_bit_of_the_mech_list_mic_is_detected() {
    for bit in 0..128 {
        let client = Initiator::new(alice("secret"), "cifs/files", Framing::Spnego);
        let step = run(client, Acceptor::new(config()), 1, |leg, token| match leg {
            1 => change_mic(&token, |mut mic| {
                mic[bit / 8] ^= 1 << (bit % 8);
                Some(mic)
            }),
            _ => token,
        });
        assert_eq!(reason(step.1), Refusal::MechListMicMismatch, "bit {bit}");
    }
}

#[test]
fn a_client_checks_the_mech_list_mic_of_the_server() {
    let mut client = Initiator::new(alice("secret"), "cifs/files", Framing::Spnego);
    let mut acceptor = Acceptor::new(config());
    let mut token = first_token(&mut client);
    let last = loop {
        match acceptor.step(&token, NOW, &entropy(1)) {
            Step::Continue(reply) => match client.step(&reply, NOW, &entropy(2)) {
                Ok(InitiatorStep::Continue(next)) => token = next,
                other => panic!("{other:?}"),
            },
            Step::Done(accepted) => break accepted.token,
            other => panic!("{other:?}"),
        }
    };
    let changed = change_mic(&last, |mut mic| {
        mic[5] ^= 1;
        Some(mic)
    });
    let error = client
        .step(&changed, NOW, &entropy(3))
        .expect_err("a changed MIC");
    assert_eq!(error, InitiatorError::MechListMicMismatch);
}

/// The MIC in the last message covers each of the three messages.
#[test]
fn changed_ntlm_messages_are_detected() {
    let raw = || Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
    // An attacker removes the SIGN flag from the NEGOTIATE.
    let step = run(raw(), Acceptor::new(config()), 1, |leg, token| match leg {
        0 => {
            let negotiate = Negotiate::decode(&token).expect("ours");
            Negotiate {
                flags: negotiate.flags.without(Flags::SIGN),
                ..negotiate
            }
            .encode()
        }
        _ => token,
    });
    assert_eq!(reason(step.1), Refusal::MicMismatch);
    // Every byte of the fixed part of the AUTHENTICATE, and of its MIC.
    for at in (12..88).filter(|at| !(44..52).contains(at)) {
        let step = run(raw(), Acceptor::new(config()), 1, |leg, mut token| {
            if leg == 1 {
                token[at] ^= 1;
            }
            token
        });
        assert!(
            matches!(step.1, Step::Refused { .. }),
            "byte {at}: {:?}",
            step.1
        );
    }
}

#[test]
fn a_removed_mic_is_detected() {
    let client = Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
    let step = run(client, Acceptor::new(config()), 1, |leg, token| match leg {
        1 => Authenticate {
            mic: None,
            ..Authenticate::decode(&token).expect("ours")
        }
        .encode(),
        _ => token,
    });
    assert_eq!(reason(step.1), Refusal::MicMismatch);
}

/// The client's proof covers the flag that announces the MIC.
#[test]
fn the_announcement_of_the_mic_cannot_be_removed() {
    let client = Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
    let step = run(client, Acceptor::new(config()), 1, |leg, token| {
        if leg == 0 {
            return token;
        }
        let message = Authenticate::decode(&token).expect("ours");
        let proof = Ntlmv2Response::decode(message.nt_response).expect("ours");
        assert!(proof.av_flags().contains(AvFlags::MIC));
        let mut response = message.nt_response.to_vec();
        let flags = [6, 0, 4, 0, 2, 0, 0, 0];
        let at = response
            .windows(8)
            .position(|bytes| bytes == flags)
            .expect("AV_FLAGS");
        response[at + 4] = 0;
        Authenticate {
            nt_response: &response,
            mic: None,
            ..message
        }
        .encode()
    });
    assert_eq!(reason(step.1), Refusal::BadPassword);
}

#[test]
fn old_ntlm_is_refused() {
    for (lm, nt) in [
        (&[7; 24][..], &[7; 24][..]),
        (&[7; 24], &[]),
        (&[], &[7; 24]),
    ] {
        let client = Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
        let step = run(client, Acceptor::new(config()), 1, |leg, token| match leg {
            1 => {
                let message = Authenticate::decode(&token).expect("ours");
                Authenticate {
                    lm_response: lm,
                    nt_response: nt,
                    ..message
                }
                .encode()
            }
            _ => token,
        });
        assert_eq!(reason(step.1), Refusal::NtlmV1);
    }
}

#[test]
fn session_security_cannot_be_negotiated_away() {
    let without = |missing: Flags, changed: u8| {
        let client = Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
        let step = run(client, Acceptor::new(config()), 1, |leg, token| match leg {
            0 if changed == 0 => {
                let negotiate = Negotiate::decode(&token).expect("ours");
                Negotiate {
                    flags: negotiate.flags.without(missing),
                    ..negotiate
                }
                .encode()
            }
            1 if changed == 1 => {
                let message = Authenticate::decode(&token).expect("ours");
                Authenticate {
                    flags: message.flags.without(missing),
                    ..message
                }
                .encode()
            }
            _ => token,
        });
        reason(step.1)
    };
    assert_eq!(without(Flags::UNICODE, 0), Refusal::Downgrade);
    for missing in [Flags::EXTENDED_SESSION_SECURITY, Flags::UNICODE] {
        assert_eq!(without(missing, 1), Refusal::Downgrade);

        let mut client = Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
        let challenge = challenge(&first_token(&mut client));
        let message = Challenge::decode(&challenge).expect("ours");
        let weak = Challenge {
            flags: message.flags.without(missing),
            ..message
        }
        .encode();
        let error = client
            .step(&weak, NOW, &entropy(2))
            .expect_err("a weak challenge");
        assert_eq!(error, InitiatorError::Downgrade);
    }
}

#[test]
fn a_finished_acceptor_refuses_further_tokens() {
    let mut acceptor = Acceptor::new(config());
    assert_eq!(
        reason(acceptor.step(b"garbage", NOW, &entropy(1))),
        Refusal::Malformed
    );
    let client = Initiator::new(alice("secret"), "cifs/files", Framing::Spnego);
    let (_, step) = run(client, acceptor, 1, |_, token| token);
    assert_eq!(reason(step), Refusal::Malformed);
}

#[test]
fn a_recorded_authenticate_is_valid_for_one_challenge_only() {
    let client = Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
    let mut recorded = Vec::new();
    let step = run(client, Acceptor::new(config()), 1, |_, token| {
        recorded.push(token.clone());
        token
    });
    assert!(matches!(step.1, Step::Done(_)));
    let mut acceptor = Acceptor::new(config());
    let _ = acceptor.step(&recorded[0], NOW, &entropy(99));
    assert_eq!(
        reason(acceptor.step(&recorded[1], NOW, &entropy(100))),
        Refusal::BadPassword
    );
}

#[test]
fn the_hint_offers_ntlm() {
    let hint = server_hint();
    let Ok(Token::Init(hint)) = Token::decode(&hint) else {
        panic!("{hint:?}")
    };
    assert!(hint.mechanisms.iter().eq([Oid::NTLMSSP]));
    assert_eq!(hint.hint_name, Some(HINT_NAME));
}

#[test]
fn the_challenge_names_the_server() {
    let mut client = Initiator::new(alice("secret"), "cifs/files", Framing::Raw);
    let challenge = challenge(&first_token(&mut client));
    let message = Challenge::decode(&challenge).expect("ours");
    let config: &AcceptorConfig = &config();
    let name = wire::ntlmssp::text(message.target_name);
    assert_eq!(name.as_ref(), Some(&config.names.netbios_computer));
    assert_eq!(message.server_challenge, entropy(1)[..8]);
}

fn challenge(negotiate: &[u8]) -> Vec<u8> {
    match Acceptor::new(config()).step(negotiate, NOW, &entropy(1)) {
        Step::Continue(challenge) => challenge,
        other => panic!("{other:?}"),
    }
}

fn change_mic(token: &[u8], change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) -> Vec<u8> {
    let Ok(Token::Response(token)) = Token::decode(token) else {
        panic!("{token:?}")
    };
    let mic = change(token.mech_list_mic.expect("a MIC").to_vec());
    NegTokenResp {
        mech_list_mic: mic.as_deref(),
        ..token
    }
    .encode()
}

fn reason(step: Step) -> Refusal {
    match step {
        Step::Refused { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// The AUTHENTICATE of [MS-NLMP] 4.2.4.3.
const SPEC_AUTHENTICATE: &[u8] = b"\
    \x4e\x54\x4c\x4d\x53\x53\x50\x00\x03\x00\x00\x00\x18\x00\x18\x00\x6c\x00\x00\x00\x54\x00\
    \x54\x00\x84\x00\x00\x00\x0c\x00\x0c\x00\x48\x00\x00\x00\x08\x00\x08\x00\x54\x00\x00\x00\
    \x10\x00\x10\x00\x5c\x00\x00\x00\x10\x00\x10\x00\xd8\x00\x00\x00\x35\x82\x88\xe2\x05\x01\
    \x28\x0a\x00\x00\x00\x0f\x44\x00\x6f\x00\x6d\x00\x61\x00\x69\x00\x6e\x00\x55\x00\x73\x00\
    \x65\x00\x72\x00\x43\x00\x4f\x00\x4d\x00\x50\x00\x55\x00\x54\x00\x45\x00\x52\x00\x86\xc3\
    \x50\x97\xac\x9c\xec\x10\x25\x54\x76\x4a\x57\xcc\xcc\x19\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\
    \x68\xcd\x0a\xb8\x51\xe5\x1c\x96\xaa\xbc\x92\x7b\xeb\xef\x6a\x1c\x01\x01\x00\x00\x00\x00\
    \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\x00\x00\x00\x00\
    \x02\x00\x0c\x00\x44\x00\x6f\x00\x6d\x00\x61\x00\x69\x00\x6e\x00\x01\x00\x0c\x00\x53\x00\
    \x65\x00\x72\x00\x76\x00\x65\x00\x72\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc5\xda\xd2\x54\
    \x4f\xc9\x79\x90\x94\xce\x1c\xe9\x0b\xc9\xd0\x3e";

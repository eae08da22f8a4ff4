//! Truncated tokens, tokens with wrong lengths and arbitrary bytes are refused without a panic.

mod exchange;

use exchange::{NOW, alice, config, config_with, entropy, run};
use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_auth::{Acceptor, Framing, GuestLogins, Initiator, Step};

/// The client's tokens of a successful exchange.
fn tokens(framing: Framing) -> Vec<Vec<u8>> {
    let mut tokens = Vec::new();
    let client = Initiator::new(alice("secret"), "cifs/files", framing);
    let (_, step) = run(client, Acceptor::new(config()), 1, |_, token| {
        tokens.push(token.clone());
        token
    });
    assert!(matches!(step, Step::Done(_)));
    tokens
}

/// Repeats a recorded exchange up to token number `leg`, which `token` replaces, with the same
/// entropy of the server.
fn replay(tokens: &[Vec<u8>], leg: usize, token: &[u8]) -> Step {
    let mut acceptor = Acceptor::new(config());
    for (number, good) in (1..).zip(&tokens[..leg]) {
        let _ = acceptor.step(good, NOW, &entropy(number));
    }
    acceptor.step(token, NOW, &entropy(leg as u8 + 1))
}

#[test]
fn truncated_tokens_never_log_in() {
    for framing in [Framing::Spnego, Framing::Raw] {
        let tokens = tokens(framing);
        assert!(matches!(replay(&tokens, 1, &tokens[1]), Step::Done(_)));
        for len in 0..tokens[1].len() {
            let step = replay(&tokens, 1, &tokens[1][..len]);
            assert!(
                matches!(step, Step::Refused { .. }),
                "{framing:?} {len}: {step:?}"
            );
        }
        for len in 0..tokens[0].len() {
            let step = replay(&tokens, 0, &tokens[0][..len]);
            assert!(!matches!(step, Step::Done(_)));
        }
    }
}

/// CVE-2023-0210: a session key or a response longer or shorter than the code expected.
#[test]
fn fields_of_any_length_and_offset_never_log_in() {
    let tokens = tokens(Framing::Raw);
    let interesting = [
        0_u32,
        1,
        15,
        16,
        17,
        23,
        24,
        43,
        44,
        63,
        88,
        0x7fff,
        0xffff,
        0xffff_ffff,
    ];
    // Workstation (44) is no part of the proof, but the MIC covers it.
    for field in [12, 20, 28, 36, 44, 52] {
        for len in interesting {
            for offset in interesting {
                let mut token = tokens[1].clone();
                token[field..field + 2].copy_from_slice(&(len as u16).to_le_bytes());
                token[field + 4..field + 8].copy_from_slice(&offset.to_le_bytes());
                let step = replay(&tokens, 1, &token);
                assert!(
                    matches!(step, Step::Refused { .. }),
                    "{field} {len} {offset}: {step:?}"
                );
            }
        }
    }
}

#[test]
fn oversized_tokens_are_refused() {
    let token = vec![0x60; smbeam_auth::TOKEN_LEN_MAX + 1];
    let step = Acceptor::new(config()).step(&token, NOW, &entropy(1));
    assert!(matches!(step, Step::Refused { .. }));
}

proptest! {
    #[test]
    fn any_bytes_never_panic_and_never_log_in(legs in vec(vec(any::<u8>(), 0..300), 1..4)) {
        let mut acceptor = Acceptor::new(config_with(true, GuestLogins::Refused));
        for leg in &legs {
            let step = acceptor.step(leg, NOW, &entropy(1));
            prop_assert!(!matches!(step, Step::Done(_)));
        }
    }

    /// The MIC and the proof cover every byte of the last token except the unused ones: the second
    /// length of each field, and reserved bits.
    #[test]
    fn changed_bytes_never_panic(leg in 0_usize..2, at: u16, value: u8, spnego: bool) {
        let tokens = tokens(if spnego { Framing::Spnego } else { Framing::Raw });
        let mut token = tokens[leg].clone();
        let at = usize::from(at) % token.len();
        token[at] = value;
        let _ = replay(&tokens, leg, &token);
        // The client receives the same token.
        let mut client = Initiator::new(alice("secret"), "cifs/files", Framing::Spnego);
        let _ = client.step(&token, NOW, &entropy(1));
    }

    #[test]
    fn initiators_survive_any_server(legs in vec(vec(any::<u8>(), 0..300), 1..4), raw: bool) {
        let framing = if raw { Framing::Raw } else { Framing::Spnego };
        let mut client = Initiator::new(alice("secret"), "cifs/files", framing);
        let _ = client.start(NOW, &entropy(0));
        for leg in &legs {
            let _ = client.step(leg, NOW, &entropy(1));
        }
    }
}

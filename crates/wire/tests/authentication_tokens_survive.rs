//! SPNEGO and NTLM tokens of real exchanges and of the specifications decode to the expected values
//! and encode to the same bytes. Tokens with wrong lengths are refused.
//!
//! The SPNEGO tokens are from "SMB 2 and SMB 3 security in Windows 10" by Microsoft.

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::ntlmssp::{
    self, Authenticate, AvFlags, AvId, AvPairs, Challenge, Flags, Message, Negotiate,
    Ntlmv2Response, text, utf16,
};
use smbeam_wire::spnego::{
    self, HINT_NAME, MechList, NegState, NegTokenInit, NegTokenResp, Oid, Token,
};

#[test]
fn server_hints_round_trip() {
    let bytes = hex(HINT_WINDOWS);
    let token = init(&bytes);
    assert!(token.mechanisms.iter().eq([Oid::NEGOEX, Oid::NTLMSSP]));
    assert!(
        token
            .mech_token
            .is_some_and(|token| token.starts_with(b"NEGOEXTS"))
    );
    assert_eq!(token.encode(), bytes);

    let bytes = hex(HINT_SAMBA);
    let token = init(&bytes);
    assert!(token.mechanisms.iter().eq([Oid::NTLMSSP]));
    assert_eq!(token.hint_name, Some(HINT_NAME));
    assert_eq!(token.encode(), bytes);
}

#[test]
fn first_token_of_a_client_round_trips() {
    let bytes = hex(INIT);
    let token = init(&bytes);
    assert_eq!(
        token.mechanisms.as_bytes(),
        MechList::encode(&[Oid::NTLMSSP])
    );
    assert_eq!(token.encode(), bytes);

    let inner = token.mech_token.expect("a NEGOTIATE");
    let negotiate = Negotiate::decode(inner).expect("a captured message");
    assert_eq!(negotiate.flags, Flags(0xe208_8297));
    assert_eq!(negotiate.encode(), inner);
}

#[test]
fn challenge_of_a_server_round_trips() {
    let bytes = hex(RESP_CHALLENGE);
    let token = response(&bytes);
    assert_eq!(token.state, Some(NegState::ACCEPT_INCOMPLETE));
    assert_eq!(token.mechanism, Some(Oid::NTLMSSP));
    assert_eq!(token.encode(), bytes);

    let inner = token.response_token.expect("a CHALLENGE");
    let challenge = Challenge::decode(inner).expect("a captured message");
    assert_eq!(text(challenge.target_name).as_deref(), Some("SUT311"));
    let computer = AvPairs::new(challenge.target_info).find(AvId::DNS_COMPUTER_NAME);
    assert_eq!(computer, Some(&utf16("SUT311")[..]));
    assert_eq!(challenge.encode(), inner);
}

#[test]
fn authenticate_of_a_client_round_trips() {
    let bytes = hex(RESP_AUTHENTICATE);
    let token = response(&bytes);
    assert_eq!(token.state, Some(NegState::ACCEPT_INCOMPLETE));
    assert_eq!(token.mech_list_mic.map(<[u8]>::len), Some(16));
    assert_eq!(token.encode(), bytes);

    let inner = token.response_token.expect("an AUTHENTICATE");
    let authenticate = Authenticate::decode(inner).expect("a captured message");
    assert_eq!(text(authenticate.user).as_deref(), Some("administrator"));
    assert_eq!(text(authenticate.workstation).as_deref(), Some("DRIVER311"));
    assert!(
        authenticate
            .mic
            .is_some_and(|mic| mic.starts_with(&[0xec, 0xac]))
    );
    assert_eq!(authenticate.encode(), inner);

    let proof = Ntlmv2Response::decode(authenticate.nt_response).expect("NTLMv2");
    assert!(proof.av_flags().contains(AvFlags::MIC));
    let target = AvPairs::new(proof.target_info).find(AvId::TARGET_NAME);
    assert_eq!(target.and_then(text).as_deref(), Some("cifs/SUT311"));
}

#[test]
fn last_token_of_a_server_round_trips() {
    let bytes = hex(RESP_COMPLETED);
    let token = response(&bytes);
    assert_eq!(token.state, Some(NegState::ACCEPT_COMPLETED));
    assert_eq!(token.mechanism, None);
    assert_eq!(token.encode(), bytes);
}

#[test]
fn messages_of_the_ntlm_specification_round_trip() {
    let bytes = hex(SPEC_CHALLENGE);
    let challenge = Challenge::decode(&bytes).expect("an example");
    assert_eq!(
        challenge.server_challenge,
        [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
    );
    assert_eq!(challenge.encode(), bytes);

    let bytes = hex(SPEC_AUTHENTICATE);
    let authenticate = Authenticate::decode(&bytes).expect("an example");
    assert_eq!(text(authenticate.user).as_deref(), Some("User"));
    assert_eq!(text(authenticate.domain).as_deref(), Some("Domain"));
    assert_eq!(authenticate.mic, None);
    assert_eq!(authenticate.encode(), bytes);
    let proof = Ntlmv2Response::decode(authenticate.nt_response).expect("NTLMv2");
    assert_eq!(proof.client_challenge, [0xaa; 8]);
}

/// CVE-2023-0210 and CVE-2023-38428: a client without an account could read and write the server's
/// memory, because the server did not check the lengths and offsets of an AUTHENTICATE.
#[test]
fn fields_outside_the_message_are_refused() {
    let whole = hex(RESP_AUTHENTICATE);
    let good = response(&whole)
        .response_token
        .expect("an AUTHENTICATE")
        .to_vec();
    for at in [12, 20, 28, 36, 44, 52] {
        for (len, offset) in [
            (0xffff, 88),
            (1, 0xffff_ffff),
            (0xffff, 0xffff_ffff),
            (1, good.len() as u32),
            (2, good.len() as u32 - 1),
            (4, 0),
            (4, 63),
            (16, 0xffff_fff0_u32),
        ] {
            let mut bad = good.clone();
            bad[at..at + 2].copy_from_slice(&(len as u16).to_le_bytes());
            bad[at + 4..at + 8].copy_from_slice(&offset.to_le_bytes());
            let result = Authenticate::decode(&bad);
            assert!(
                matches!(result, Err(ntlmssp::DecodeError::Field(_))),
                "{at} {len} {offset}"
            );
        }
    }
}

#[test]
fn empty_fields_may_have_any_offset() {
    let mut bytes = hex(SPEC_AUTHENTICATE);
    bytes[44..52].copy_from_slice(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    let message = Authenticate::decode(&bytes).expect("an empty workstation is nowhere");
    assert_eq!(message.workstation, b"");
}

#[test]
fn truncated_tokens_are_refused_at_every_byte() {
    for token in [
        HINT_WINDOWS,
        HINT_SAMBA,
        INIT,
        RESP_CHALLENGE,
        RESP_AUTHENTICATE,
    ] {
        let bytes = hex(token);
        for len in 0..bytes.len() {
            assert!(Token::decode(&bytes[..len]).is_err(), "{len} of {token}");
        }
    }
    for message in [SPEC_CHALLENGE, SPEC_AUTHENTICATE] {
        let bytes = hex(message);
        for len in 0..bytes.len() {
            assert!(
                Message::decode(&bytes[..len]).is_err(),
                "{len} of {message}"
            );
        }
    }
}

#[test]
fn av_pairs_need_an_end_and_have_a_limit() {
    let pairs = |bytes: &[u8]| {
        AvPairs::new(bytes)
            .map(|pair| pair.map(|_| ()))
            .collect::<Vec<_>>()
    };
    let error = Err(ntlmssp::DecodeError::AvPairs);
    assert_eq!(pairs(&[]), [error]);
    assert_eq!(pairs(&[0, 0, 0, 0]), []);
    assert_eq!(pairs(&[1, 0, 2, 0, 65]), [error]);
    assert_eq!(pairs(&[1, 0, 2, 0, 65, 0]), [Ok(()), error]);
    assert_eq!(
        pairs(&[1, 0, 0, 0].repeat(10_000)).len(),
        ntlmssp::AV_PAIRS_MAX + 1
    );
}

#[test]
fn der_with_unusual_lengths_is_refused_or_decoded() {
    // An indefinite length, a length of five bytes, and one of four bytes past the end.
    for bad in ["a180", "a1850000000001", "a184ffffffff", "a1"] {
        assert!(Token::decode(&hex(bad)).is_err(), "{bad}");
    }
    // A length that is not minimal: some encoders always use two bytes.
    let long = hex("a18200073005a0030a0101");
    assert_eq!(response(&long).state, Some(NegState::ACCEPT_INCOMPLETE));
    let many = MechList::encode(&[Oid::NTLMSSP; spnego::MECHANISMS_MAX + 1]);
    assert_eq!(
        MechList::decode(&many),
        Err(spnego::DecodeError::TooManyMechanisms)
    );
}

proptest! {
    #[test]
    fn any_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..200), kind in 1_u8..4) {
        let _ = Token::decode(&bytes);
        let _ = Ntlmv2Response::decode(&bytes).map(|response| response.av_flags());
        AvPairs::new(&bytes).for_each(drop);
        if bytes.len() >= 12 {
            bytes[..12].copy_from_slice(b"NTLMSSP\0\x01\0\0\0");
            bytes[8] = kind;
        }
        let _ = Message::decode(&bytes);
    }

    #[test]
    fn authenticate_round_trips(
        fields in vec(vec(any::<u8>(), 0..40), 6),
        flags: u32,
        version: [u8; 8],
        mic: Option<[u8; 16]>,
    ) {
        let flags = Flags(flags);
        let message = Authenticate {
            flags,
            lm_response: &fields[0],
            nt_response: &fields[1],
            domain: &fields[2],
            user: &fields[3],
            workstation: &fields[4],
            encrypted_session_key: &fields[5],
            version: flags.contains(Flags::VERSION).then_some(ntlmssp::Version(version)),
            mic,
        };
        let bytes = message.encode();
        prop_assert_eq!(Authenticate::decode(&bytes), Ok(message));
    }

    #[test]
    fn spnego_round_trips(token in vec(any::<u8>(), 0..70_000), mic: Option<[u8; 16]>, state: u8) {
        let mechanisms = MechList::encode(&[Oid::KERBEROS, Oid::NTLMSSP]);
        let init = NegTokenInit {
            mechanisms: MechList::decode(&mechanisms).expect("encoded here"),
            mech_token: Some(&token),
            hint_name: None,
            mech_list_mic: mic.as_ref().map(|mic| &mic[..]),
        };
        let bytes = init.encode();
        prop_assert_eq!(Token::decode(&bytes), Ok(Token::Init(init)));
        let response = NegTokenResp {
            state: Some(NegState(state)),
            mechanism: Some(Oid::NTLMSSP),
            response_token: Some(&token),
            mech_list_mic: mic.as_ref().map(|mic| &mic[..]),
        };
        let bytes = response.encode();
        prop_assert_eq!(Token::decode(&bytes), Ok(Token::Response(response)));
    }

    #[test]
    fn names_round_trip(name: String) {
        prop_assert_eq!(text(&utf16(&name)), Some(name));
    }
}

fn init(bytes: &[u8]) -> NegTokenInit<'_> {
    match Token::decode(bytes) {
        Ok(Token::Init(token)) => token,
        other => panic!("{other:?}"),
    }
}

fn response(bytes: &[u8]) -> NegTokenResp<'_> {
    match Token::decode(bytes) {
        Ok(Token::Response(token)) => token,
        other => panic!("{other:?}"),
    }
}

fn hex(hex: &str) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a constant in hex") as u8;
    hex.as_bytes()
        .chunks(2)
        .map(|pair| digit(&pair[0]) << 4 | digit(&pair[1]))
        .collect()
}

/// Sent by Windows Server 2016 in a NEGOTIATE response: NegoEx and NTLM, NegoEx first.
const HINT_WINDOWS: &str = "\
    6082013c06062b0601050502a08201303082012ca01a3018060a2b06010401823702021e060a2b0601040182\
    3702020aa282010c048201084e45474f45585453010000000000000060000000700000007c7cc0fd06d6362d\
    02dde1cf343bfe292900f49750b4aa97934d9c4296b26e51fd370471b235e15a50dae15bd5489c8700000000\
    00000000600000000100000000000000000000005c33530deaf90d4db2ec4ae3786ec3084e45474f45585453\
    030000000100000040000000980000007c7cc0fd06d6362d02dde1cf343bfe295c33530deaf90d4db2ec4ae3\
    786ec30840000000580000003056a05430523027802530233121301f06035504031318546f6b656e20536967\
    6e696e67205075626c6963204b65793027802530233121301f06035504031318546f6b656e205369676e696e\
    67205075626c6963204b6579";
/// Sent by a Samba server without Kerberos in a NEGOTIATE response.
const HINT_SAMBA: &str = "\
    604806062b0601050502a03e303ca00e300c060a2b06010401823702020aa32a3028a0261b246e6f745f6465\
    66696e65645f696e5f5246433431373840706c656173655f69676e6f7265";
/// The client's first token: NTLM alone, with a NEGOTIATE.
const INIT: &str = "\
    604806062b0601050502a03e303ca00e300c060a2b06010401823702020aa22a04284e544c4d535350000100\
    0000978208e200000000000000000000000000000000060380250000000f";
/// The server's response: accept-incomplete, NTLM, a CHALLENGE.
const RESP_CHALLENGE: &str = "\
    a181b03081ada0030a0101a10c060a2b06010401823702020aa281970481944e544c4d53535000020000000c\
    000c003800000015828ae20d1d8ba31179d008000000000000000050005000440000000a0092270000000f53\
    005500540033003100310002000c0053005500540033003100310001000c0053005500540033003100310004\
    000c0053005500540033003100310003000c0053005500540033003100310007000800a1a1f5adcbaed00100\
    000000";
/// The client's second token: an AUTHENTICATE with MIC, and a mechListMIC.
const RESP_AUTHENTICATE: &str = "\
    a18201cb308201c7a0030a0101a28201aa048201a64e544c4d53535000030000001800180090000000ee00ee\
    00a80000000c000c00580000001a001a0064000000120012007e0000001000100096010000158288e2060380\
    250000000fecac77a5f385a8bf9c38c706eeeddcd3530055005400330031003100610064006d0069006e0069\
    00730074007200610074006f0072004400520049005600450052003300310031000000000000000000000000\
    0000000000000000000000000063078eb639fe03e20a231c3ae3bf23080101000000000000a1a1f5adcbaed0\
    01bc4ad05f223cc90f0000000002000c0053005500540033003100310001000c005300550054003300310031\
    0004000c0053005500540033003100310003000c0053005500540033003100310007000800a1a1f5adcbaed0\
    0106000400020000000800300030000000000000000000000000300000b61fefcaa857ea57bf1edcebf8974b\
    8e0eba5a6dfd9d07a31d11b548f8c9d0cc0a0010000000000000000000000000000000000009001600630069\
    00660073002f005300550054003300310031000000000000000000000000003b9bdff38f5ee8f9663f11a0f4\
    c03a78a31204100100000063775a9a5fd97f0600000000";
/// The server's last token: accept-completed and a mechListMIC.
const RESP_COMPLETED: &str = "\
    a11b3019a0030a0100a3120410010000003b453cdc3524164200000000";
/// The CHALLENGE of [MS-NLMP] 4.2.4.3.
const SPEC_CHALLENGE: &str = "\
    4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef000000000000000024002400\
    44000000060070170000000f53006500720076006500720002000c0044006f006d00610069006e0001000c00\
    53006500720076006500720000000000";
/// The AUTHENTICATE of [MS-NLMP] 4.2.4.3.
const SPEC_AUTHENTICATE: &str = "\
    4e544c4d5353500003000000180018006c00000054005400840000000c000c00480000000800080054000000\
    100010005c00000010001000d8000000358288e20501280a0000000f44006f006d00610069006e0055007300\
    6500720043004f004d005000550054004500520086c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa\
    68cd0ab851e51c96aabc927bebef6a1c01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000\
    02000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000c5dad254\
    4fc9799094ce1ce90bc9d03e";

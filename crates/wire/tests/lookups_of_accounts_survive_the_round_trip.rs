//! The calls of lsarpc: the crate decodes those of Samba 4.25, round trips preserve all values, and
//! any bytes lead to an error at most.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::rpc::lsarpc::{
    Close, DomainInformation, InformationClass, LookupNames, LookupNamesResponse, LookupSids,
    LookupSidsResponse, NamesVersion, OpenPolicy, OpenPolicyResponse, PolicyAccess, PolicyHandle,
    PolicyInformation, QueryInformation, QueryInformationResponse, ReferencedDomain, SidKind,
    SidsVersion, TranslatedName, TranslatedSid,
};
use smbeam_wire::security::Sid;
use smbeam_wire::{Guid, Status};
use support::hex;

/// Encoded by Samba: LsarOpenPolicy2 of `\\server`, with a quality of service.
const OPEN_POLICY: &str = "\
    000002000900000000000000090000005c005c00730065007200760065007200000000001800000000000000\
    000000000000000000000000040002000c0000000200010000000002";
/// Encoded by Samba: LsarLookupSids2 of two SIDs.
const LOOKUP_SIDS: &str = "\
    00000000000102030405060708090a0b0c0d0e0f020000000000020002000000040002000800020002000000\
    0102000000000005200000002002000002000000010200000000001601000000d10700000000000000000000\
    01000000000000000000000002000000";
/// Encoded by Samba: LsarLookupNames3 of two names.
const LOOKUP_NAMES: &str = "\
    00000000000102030405060708090a0b0c0d0e0f02000000020000000a000a00000002001a001a0004000200\
    05000000000000000500000061006c0069006300650000000d000000000000000d0000004200550049004c00\
    540049004e005c00550073006500720073000000000000000000000001000000000000000000000002000000";

const SIDS: [SidsVersion; 2] = [SidsVersion::One, SidsVersion::Two];
const NAMES: [NamesVersion; 3] = [NamesVersion::One, NamesVersion::Two, NamesVersion::Three];

fn policy() -> PolicyHandle {
    PolicyHandle {
        attributes: 0,
        uuid: Guid(core::array::from_fn(|index| index as u8)),
    }
}

#[test]
fn calls_of_samba_are_read_and_written() {
    let open = OpenPolicy::decode_2(&hex(OPEN_POLICY)).expect("it can be read");
    assert_eq!(open.access, PolicyAccess::MAXIMUM_ALLOWED);
    let bytes = hex(LOOKUP_SIDS);
    let sids = LookupSids::decode(&bytes, SidsVersion::Two).expect("it can be read");
    let expected = LookupSids {
        policy: policy(),
        sids: vec![Sid::BUILTIN_ADMINISTRATORS, Sid::unix_user(2001)],
        level: 1,
    };
    assert_eq!(sids, expected);
    assert_eq!(sids.encode(SidsVersion::Two), bytes);
    let bytes = hex(LOOKUP_NAMES);
    let names = LookupNames::decode(&bytes, NamesVersion::Three).expect("it can be read");
    assert_eq!(names.names, ["alice", "BUILTIN\\Users"]);
    assert_eq!(names.encode(NamesVersion::Three), bytes);
    for bytes in [hex(OPEN_POLICY), hex(LOOKUP_SIDS), hex(LOOKUP_NAMES)] {
        for end in 0..bytes.len() {
            decode_all(&bytes[..end]);
        }
    }
}

#[test]
fn numbers_that_contradict_each_other_are_refused() {
    // Positions of the number of SIDs, of the array, and of the sub-authorities of the first SID.
    for at in [20, 28, 40] {
        for number in [0, 1, 3, 0x1000_0000, u32::MAX] {
            let mut bytes = hex(LOOKUP_SIDS);
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            assert!(
                LookupSids::decode(&bytes, SidsVersion::Two).is_err(),
                "{at} {number}"
            );
        }
    }
    // The number of names, of the array, and the length, the offset and the units of the first
    // name.
    for at in [20, 24, 28, 48, 52] {
        let mut bytes = hex(LOOKUP_NAMES);
        bytes[at] ^= 0x7F;
        assert!(
            LookupNames::decode(&bytes, NamesVersion::Three).is_err(),
            "{at}"
        );
    }
}

#[test]
fn too_many_sids_are_refused() {
    let decode = |count| {
        let request = LookupSids {
            policy: policy(),
            sids: vec![Sid::EVERYONE; count],
            level: 1,
        };
        LookupSids::decode(&request.encode(SidsVersion::One), SidsVersion::One)
    };
    assert!(decode(1_000).is_ok());
    assert!(decode(1_001).is_err());
}

#[test]
fn information_survives() {
    for sid in [None, Sid::new(5, &[21, 1, 2, 3])] {
        let name = "BEAM".to_owned();
        let domain = DomainInformation { name, sid };
        for information in [
            PolicyInformation::PrimaryDomain(domain.clone()),
            PolicyInformation::AccountDomain(domain.clone()),
            PolicyInformation::DnsDomain(domain.clone()),
            PolicyInformation::ServerRole(3),
        ] {
            let response = QueryInformationResponse {
                information: Some(information),
                status: Status::SUCCESS,
            };
            let again = QueryInformationResponse::decode(&response.encode());
            assert_eq!(again, Ok(response));
        }
    }
    let query = QueryInformation {
        policy: policy(),
        class: InformationClass::ACCOUNT_DOMAIN,
    };
    assert_eq!(QueryInformation::decode(&query.encode()), Ok(query));
    let close = Close { policy: policy() };
    assert_eq!(Close::decode(&close.encode()), Ok(close));
}

/// Decodes bytes as each message.
fn decode_all(bytes: &[u8]) {
    let _ = OpenPolicy::decode(bytes);
    let _ = OpenPolicy::decode_2(bytes);
    let _ = OpenPolicyResponse::decode(bytes);
    let _ = QueryInformation::decode(bytes);
    let _ = QueryInformationResponse::decode(bytes);
    for version in SIDS {
        let _ = LookupSids::decode(bytes, version);
        let _ = LookupSidsResponse::decode(bytes, version);
    }
    for version in NAMES {
        let _ = LookupNames::decode(bytes, version);
        let _ = LookupNamesResponse::decode(bytes, version);
    }
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9$ \u{e4}\u{1F600}]{0,12}"
}

fn sid() -> impl Strategy<Value = Sid> {
    vec(any::<u32>(), 0..15).prop_map(|parts| Sid::new(5, &parts).expect("few numbers"))
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        decode_all(&bytes);
    }

    #[test]
    fn spoiled_messages_are_read_or_refused(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for message in [OPEN_POLICY, LOOKUP_SIDS, LOOKUP_NAMES] {
            let mut bytes = hex(message);
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            decode_all(&bytes);
        }
    }

    #[test]
    fn lookups_survive(
        names in vec(text(), 0..5),
        domain in (text(), sid()),
        rids in vec(0..u32::MAX, 0..5),
    ) {
        let (name, sid) = domain;
        let domains = vec![ReferencedDomain { name, sid }];
        for version in SIDS {
            let entry = |name: &String| TranslatedName {
                kind: SidKind::USER,
                name: name.clone(),
                domain: (!name.is_empty()).then_some(0),
            };
            let response = LookupSidsResponse {
                domains: domains.clone(),
                names: names.iter().map(entry).collect(),
                mapped_count: 7,
                status: Status::SOME_NOT_MAPPED,
            };
            let again = LookupSidsResponse::decode(&response.encode(version), version);
            prop_assert_eq!(again, Ok(response));
        }
        for version in NAMES {
            let request = LookupNames { policy: policy(), names: names.clone(), level: 1 };
            let again = LookupNames::decode(&request.encode(version), version);
            prop_assert_eq!(again, Ok(request));
            let entry = |rid: &u32| TranslatedSid {
                kind: SidKind::USER,
                sid: sid.with_rid(*rid),
                domain: sid.with_rid(*rid).map(|_| 0),
            };
            let response = LookupNamesResponse {
                domains: domains.clone(),
                sids: rids.iter().map(entry).collect(),
                mapped_count: 0,
                status: Status::SUCCESS,
            };
            let again = LookupNamesResponse::decode(&response.encode(version), version);
            prop_assert_eq!(again, Ok(response));
        }
    }
}

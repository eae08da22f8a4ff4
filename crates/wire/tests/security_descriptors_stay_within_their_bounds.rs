//! SIDs, lists and descriptors convert between text and bytes; wrong lengths, counts and offsets
//! are errors.

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::access::AccessMask;
use smbeam_wire::error::DecodeError;
use smbeam_wire::security::*;

fn encoded(descriptor: &SecurityDescriptor) -> Vec<u8> {
    let mut bytes = Vec::new();
    descriptor.encode(&mut bytes);
    assert_eq!(bytes.len(), descriptor.encoded_len());
    bytes
}

fn sid(text: &str) -> Sid {
    text.parse().expect("a SID")
}

/// The SID of the administrators, in the layout of \[MS-DTYP\] 2.4.2.2.
const ADMINISTRATORS: [u8; 16] = *b"\x01\x02\0\0\0\0\0\x05\x20\0\0\0\x20\x02\0\0";

#[test]
fn a_sid_has_bytes_and_a_text() {
    let mut bytes = Vec::new();
    Sid::BUILTIN_ADMINISTRATORS.encode(&mut bytes);
    assert_eq!(bytes, ADMINISTRATORS);
    assert_eq!(Sid::decode(&bytes), Ok(Sid::BUILTIN_ADMINISTRATORS));
    assert_eq!(Sid::BUILTIN_ADMINISTRATORS.to_string(), "S-1-5-32-544");
    for end in 0..bytes.len() {
        assert!(matches!(
            Sid::decode(&bytes[..end]),
            Err(DecodeError::Truncated { .. })
        ));
    }
}

#[test]
fn known_sids_have_their_texts() {
    let known = [
        (Sid::NULL, "S-1-0-0"),
        (Sid::EVERYONE, "S-1-1-0"),
        (Sid::CREATOR_OWNER, "S-1-3-0"),
        (Sid::CREATOR_GROUP, "S-1-3-1"),
        (Sid::ANONYMOUS, "S-1-5-7"),
        (Sid::AUTHENTICATED_USERS, "S-1-5-11"),
        (Sid::LOCAL_SYSTEM, "S-1-5-18"),
        (Sid::BUILTIN_USERS, "S-1-5-32-545"),
        (Sid::unix_user(1000), "S-1-22-1-1000"),
        (Sid::unix_group(4_294_967_295), "S-1-22-2-4294967295"),
        (
            Sid::new(0x1_0000_0000, &[]).expect("48 bits"),
            "S-1-0x000100000000",
        ),
    ];
    for (known, text) in known {
        assert_eq!(known.to_string(), text);
        assert_eq!(sid(text), known);
    }
}

#[test]
fn texts_that_are_no_sids() {
    let texts = [
        "",
        "S",
        "S-1",
        "S-1-",
        "S-2-5-1",
        "S-1-5-",
        "S-1--5",
        "S-1-5-4294967296",
        "S-1-+5",
        "S-1-5-1 ",
        "S-1-0x",
        "S-1-0xG",
        "S-1-0x1000000000000",
        "S-1-281474976710656",
        "S-1-5-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16",
    ];
    for text in texts {
        assert_eq!(text.parse::<Sid>(), Err(ParseSidError), "{text}");
    }
}

#[test]
fn unix_ids_survive_the_round_trip() {
    assert_eq!(Sid::unix_user(7).to_unix_user(), Some(7));
    assert_eq!(Sid::unix_user(7).to_unix_group(), None);
    assert_eq!(sid("S-1-5-88-1-7").to_unix_user(), Some(7));
    assert_eq!(sid("S-1-5-88-2-7").to_unix_group(), Some(7));
    assert_eq!(sid("S-1-5-88-3-420").to_unix_mode(), Some(0o644));
    assert_eq!(Sid::EVERYONE.to_unix_user(), None);
}

#[test]
fn a_sid_has_at_most_15_sub_authorities() {
    assert_eq!(Sid::new(5, &[1; 16]), None);
    assert_eq!(Sid::new(1 << 48, &[]), None);
    let full = Sid::new(5, &[1; 15]).expect("15");
    assert_eq!(full.with_rid(1), None);
    let mut bytes = Vec::new();
    full.encode(&mut bytes);
    bytes[1] = 16;
    bytes.extend([0; 64]);
    let error = Err(DecodeError::Invalid {
        field: "SubAuthorityCount",
        value: 16,
    });
    assert_eq!(Sid::decode(&bytes), error);
    bytes[0] = 2;
    assert!(Sid::decode(&bytes).is_err());
}

#[test]
fn modes_are_presented_as_samba_does() {
    let descriptor = SecurityDescriptor::from_unix_mode(1000, 100, 0o750, false);
    assert_eq!(descriptor.owner, Some(Sid::unix_user(1000)));
    assert_eq!(descriptor.group, Some(Sid::unix_group(100)));
    assert_eq!(masks(&descriptor), [0x001E_01FF, 0x0012_00A9, 0]);
    let descriptor = SecurityDescriptor::from_unix_mode(1000, 100, 0o726, true);
    assert_eq!(masks(&descriptor), [0x001F_01FF, 0x0012_0156, 0x0012_01DF]);
    assert_eq!(
        SecurityDescriptor::decode(&encoded(&descriptor)),
        Ok(descriptor)
    );
}

fn masks(descriptor: &SecurityDescriptor) -> Vec<u32> {
    let dacl = descriptor.dacl.as_ref().expect("a DACL");
    let mask = |ace: &Ace| match ace {
        Ace::Basic { mask, .. } => mask.0,
        Ace::Other { .. } => panic!("a basic entry"),
    };
    dacl.aces().iter().map(mask).collect()
}

#[test]
fn a_query_gets_the_parts_it_asks_for() {
    let whole = SecurityDescriptor::from_unix_mode(1, 2, 0o644, false);
    let owner = whole.select(SecurityInformation::OWNER);
    assert_eq!(owner.owner, whole.owner);
    assert_eq!((owner.group, owner.dacl.is_none()), (None, true));
    assert_eq!(owner.control, DescriptorControl::SELF_RELATIVE);
    let parts = SecurityInformation::OWNER | SecurityInformation::GROUP | SecurityInformation::DACL;
    assert_eq!(whole.select(parts), whole);
}

#[test]
fn no_dacl_and_the_null_dacl_are_two_things() {
    let mut descriptor = SecurityDescriptor::default();
    let bytes = encoded(&descriptor);
    assert_eq!(bytes, b"\x01\0\0\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    descriptor.control = DescriptorControl::DACL_PRESENT;
    let null = SecurityDescriptor::decode(&encoded(&descriptor)).expect("a descriptor");
    assert!(null.control.contains(DescriptorControl::DACL_PRESENT));
    assert_eq!(null.dacl, None);
    descriptor.dacl = Some(Acl::new());
    let empty = SecurityDescriptor::decode(&encoded(&descriptor)).expect("a descriptor");
    assert_eq!(empty.dacl, Some(Acl::new()));
}

#[test]
fn offsets_must_point_past_the_header_and_before_the_end() {
    let good = encoded(&SecurityDescriptor::from_unix_mode(1, 2, 0o644, false));
    for field in [4, 8, 16] {
        for offset in [
            1_u32,
            19,
            good.len() as u32,
            good.len() as u32 + 1,
            u32::MAX,
        ] {
            let mut bytes = good.clone();
            bytes[field..field + 4].copy_from_slice(&offset.to_le_bytes());
            assert!(
                SecurityDescriptor::decode(&bytes).is_err(),
                "{field} {offset}"
            );
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = encoded(&SecurityDescriptor::from_unix_mode(1, 2, 0o644, false));
    for end in 0..bytes.len() {
        assert!(
            SecurityDescriptor::decode(&bytes[..end]).is_err(),
            "{end} bytes"
        );
    }
}

#[test]
fn a_descriptor_that_is_not_self_relative_is_an_error() {
    let mut bytes = encoded(&SecurityDescriptor::default());
    bytes[3] = 0;
    assert!(SecurityDescriptor::decode(&bytes).is_err());
}

#[test]
fn lists_with_wrong_lengths_are_errors() {
    let mut acl = Acl::new();
    assert!(acl.push(Ace::allow(Sid::EVERYONE, AccessMask(1), AceFlags::NONE)));
    let mut good = Vec::new();
    acl.encode(&mut good);
    assert_eq!(
        good,
        b"\x02\0\x1C\0\x01\0\0\0\0\0\x14\0\x01\0\0\0\x01\x01\0\0\0\0\0\x01\0\0\0\0"
    );
    assert_eq!(Acl::decode(&good), Ok(acl));
    // Revision; AclSize below its header, short, past the end; AceCount; AceSize below its
    // header, misaligned, too short for the SID, past the end; sub-authorities past the entry.
    let changes = [
        (0, 1),
        (0, 5),
        (2, 7),
        (2, 0x18),
        (2, 0x1D),
        (3, 1),
        (4, 2),
        (5, 0xFF),
        (10, 0),
        (10, 3),
        (10, 0x13),
        (10, 0x10),
        (10, 0x18),
        (17, 2),
        (17, 255),
    ];
    for (at, value) in changes {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert!(Acl::decode(&bytes).is_err(), "{value} at {at}");
    }
}

#[test]
fn entries_of_other_types_keep_their_bytes() {
    let mut acl = Acl::new();
    let body = b"\x01\x02\x03\x04".to_vec();
    let ace_type = AceType::ACCESS_ALLOWED_CALLBACK;
    assert!(acl.push(Ace::Other {
        ace_type,
        flags: AceFlags::INHERITED,
        body
    }));
    let mut bytes = Vec::new();
    acl.encode(&mut bytes);
    assert_eq!(bytes[8..], *b"\x09\x10\x08\0\x01\x02\x03\x04");
    assert_eq!(Acl::decode(&bytes), Ok(acl));
}

#[test]
fn a_list_never_passes_its_length_field() {
    // CVE-2023-52755: a server inherited entries without a count, and wrote past its buffer.
    let mut acl = Acl::new();
    let ace = Ace::deny(Sid::EVERYONE, AccessMask(1), AceFlags::NONE);
    let pushed = (0..5000).filter(|_| acl.push(ace.clone())).count();
    assert_eq!(pushed, (65_535 - 8) / 20);
    assert_eq!(acl.aces().len(), pushed);
    let body = vec![0; usize::from(u16::MAX)];
    assert!(!acl.push(Ace::Other {
        ace_type: AceType(99),
        flags: AceFlags::NONE,
        body
    }));
    let mut bytes = Vec::new();
    acl.encode(&mut bytes);
    assert_eq!(bytes.len(), acl.encoded_len());
    assert_eq!(Acl::decode(&bytes), Ok(acl));
}

fn any_sid() -> impl Strategy<Value = Sid> {
    (0..1_u64 << 48, vec(any::<u32>(), 0..=15))
        .prop_map(|(authority, rids)| Sid::new(authority, &rids).expect("within its bounds"))
}

fn any_ace() -> impl Strategy<Value = Ace> {
    let basic =
        (0..3_u8, any::<u8>(), any::<u32>(), any_sid()).prop_map(|(ace_type, flags, mask, sid)| {
            Ace::Basic {
                ace_type: AceType(ace_type),
                flags: AceFlags(flags),
                mask: AccessMask(mask),
                sid,
            }
        });
    let other = (0x20..=255_u8, any::<u8>(), vec(any::<[u8; 4]>(), 0..6)).prop_map(
        |(ace_type, flags, words)| Ace::Other {
            ace_type: AceType(ace_type),
            flags: AceFlags(flags),
            body: words.concat(),
        },
    );
    prop_oneof![basic, other]
}

fn any_acl() -> impl Strategy<Value = Acl> {
    vec(any_ace(), 0..6).prop_map(|aces| {
        let mut acl = Acl::new();
        assert!(aces.into_iter().all(|ace| acl.push(ace)));
        acl
    })
}

/// Parts of SDDL, in any order. Some make no valid text.
fn any_sddl() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "O:",
        "G:",
        "D:",
        "S:",
        "P",
        "AR",
        "AI",
        "NO_ACCESS_CONTROL",
        " ",
        "(A;;FA;;;WD)",
        "(D;OICI;0x7;;;S-1-22-1-7)",
        "(",
        "A;",
        "AU;",
        "SAFA;",
        "ID;",
        ";",
        "FR",
        "1",
        "0xD",
        ";;;",
        "S-1-5-32",
        "-544",
        "S-1-0xABCDEF012345",
        "BA",
        "WD",
        "D",
        ")",
    ]);
    vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn descriptors_survive_as_text(
        owner in prop::option::of(any_sid()),
        group in prop::option::of(any_sid()),
        entries in vec((any::<bool>(), any::<u8>(), any::<u32>(), any_sid()), 0..6),
        flags in any::<u16>(),
    ) {
        // Lists have the flags P, AR and AI in their texts, and entries all but a reserved one.
        let mut dacl = Acl::new();
        for (allows, flags, mask, sid) in entries {
            let (mask, flags) = (AccessMask(mask), AceFlags(flags & 0xDF));
            let make = if allows { Ace::allow } else { Ace::deny };
            prop_assert!(dacl.push(make(sid, mask, flags)));
        }
        let present = DescriptorControl::SELF_RELATIVE | DescriptorControl::DACL_PRESENT;
        let descriptor = SecurityDescriptor {
            control: DescriptorControl(flags & 0x1500) | present,
            owner,
            group,
            dacl: Some(dacl),
            ..SecurityDescriptor::default()
        };
        let text = descriptor.to_sddl().expect("a text");
        prop_assert_eq!(text.parse(), Ok(descriptor));
    }

    #[test]
    fn valid_texts_survive(text in any_sddl()) {
        if let Ok(descriptor) = text.parse::<SecurityDescriptor>() {
            let printed = descriptor.to_sddl().expect("a text");
            prop_assert_eq!(printed.parse(), Ok(descriptor), "{} as {}", text, printed);
        }
    }

    #[test]
    fn texts_of_sids_survive(sid in any_sid()) {
        prop_assert_eq!(sid.to_string().parse(), Ok(sid));
    }

    #[test]
    fn descriptors_survive(
        owner in prop::option::of(any_sid()),
        group in prop::option::of(any_sid()),
        dacl in prop::option::of(any_acl()),
        sacl in prop::option::of(any_acl()),
    ) {
        let mut control = DescriptorControl::SELF_RELATIVE;
        if dacl.is_some() {
            control |= DescriptorControl::DACL_PRESENT;
        }
        if sacl.is_some() {
            control |= DescriptorControl::SACL_PRESENT;
        }
        let resource_manager_control = 0;
        let descriptor =
            SecurityDescriptor { control, resource_manager_control, owner, group, dacl, sacl };
        prop_assert_eq!(SecurityDescriptor::decode(&encoded(&descriptor)), Ok(descriptor));
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..256)) {
        let _ = SecurityDescriptor::decode(&bytes);
        let _ = Acl::decode(&bytes);
        let _ = Sid::decode(&bytes);
    }

    #[test]
    fn a_flipped_byte_does_not_panic(acl in any_acl(), at in any::<usize>(), value in any::<u8>()) {
        let descriptor = SecurityDescriptor {
            owner: Some(Sid::EVERYONE),
            dacl: Some(acl),
            ..SecurityDescriptor::default()
        };
        let mut bytes = encoded(&descriptor);
        let at = at % bytes.len();
        bytes[at] = value;
        if let Ok(read) = SecurityDescriptor::decode(&bytes) {
            let again = encoded(&read);
            prop_assert_eq!(SecurityDescriptor::decode(&again).map(|it| it.owner), Ok(read.owner));
        }
    }

    #[test]
    fn any_text_does_not_panic(text in "(S-1-)?[-0-9a-fxX]{0,30}") {
        let _ = text.parse::<Sid>();
    }
}

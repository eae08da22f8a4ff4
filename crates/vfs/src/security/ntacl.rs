//! The extended attribute `security.NTACL`, in which Samba stores security descriptors.
//! (librpc/idl/xattr.idl, xattr_NTACL)
//!
//! The value is NDR: a version, the same number as the tag of a union, a pointer to a structure of
//! that version, and the descriptor after the structure. The offsets in the descriptor count from
//! the start of the value. Versions 1 and 2 have no hash that counts. Version 3 has a hash of the
//! descriptor that Samba derives from the permissions of the file, version 4 in addition the hash
//! of [`fingerprint`](super::fingerprint()).

use wire::security::SecurityDescriptor;

use super::fingerprint::HASH_LEN;
use crate::ndr::Ndr;

/// Maximum length of a value in bytes: that of any extended attribute of Linux.
pub(crate) const MAX_LEN: usize = 65_536;

/// The version that `encode` writes.
const VERSION: u16 = 4;
/// The hash algorithm SHA-256. XATTR_SD_HASH_TYPE_SHA256
const SHA256: u16 = 1;
/// Length of the field with a hash in bytes. XATTR_SD_HASH_SIZE
const HASH_FIELD_LEN: usize = 64;
/// The description of the lists that the hash covers, as Samba writes it for lists of Linux.
const DESCRIPTION: &[u8] = b"posix_acl\0";
/// Number of the first pointer.
const REFERENT: u32 = 0x0002_0000;
/// Offset in a self-relative descriptor of its four offsets.
const OFFSETS_AT: usize = 4;
/// Length of a self-relative descriptor before its parts in bytes.
const DESCRIPTOR_HEADER_LEN: usize = 20;

/// A stored descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NtAcl {
    pub(crate) descriptor: SecurityDescriptor,
    /// Hash of owner, group, mode and lists at the time when the descriptor was stored. `None` in
    /// versions before 4: the descriptor counts with any permissions. Samba checks the
    /// hash of version 3 as well, which covers its own conversion of the permissions.
    pub(crate) fingerprint: Option<[u8; HASH_LEN]>,
}

impl NtAcl {
    /// Decodes a value of the extended attribute, of any version. `None` if the value is not valid.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let mut ndr = Ndr::at(value, 0);
        let version = ndr.u16()?;
        if ndr.u16()? != version {
            return None;
        }
        ndr.pointer()?;
        let mut fingerprint = None;
        match version {
            1 => {}
            2 => {
                ndr.pointer()?;
                ndr.take::<16>(1)?;
            }
            3 => {
                ndr.pointer()?;
                ndr.u16()?;
                ndr.take::<HASH_FIELD_LEN>(1)?;
            }
            4 => {
                ndr.pointer()?;
                let hash_type = ndr.u16()?;
                ndr.take::<HASH_FIELD_LEN>(1)?;
                ndr.skip_string()?;
                ndr.take::<8>(4)?;
                let field = ndr.take::<HASH_FIELD_LEN>(1)?;
                // As in Samba, a hash of another type fits no permissions.
                if hash_type != SHA256 {
                    return None;
                }
                fingerprint = field.first_chunk().copied();
            }
            _ => return None,
        }
        Some(Self {
            descriptor: descriptor(&ndr)?,
            fingerprint,
        })
    }

    /// Encodes a value of version 4. `of_permissions` is the descriptor that stands for owner,
    /// group, mode and lists: Samba accepts the stored one if either hash fits.
    pub(crate) fn encode(
        descriptor: &SecurityDescriptor,
        of_permissions: &SecurityDescriptor,
        fingerprint: &[u8; HASH_LEN],
    ) -> Vec<u8> {
        let mut value = Vec::new();
        value.extend(VERSION.to_le_bytes());
        value.extend(VERSION.to_le_bytes());
        value.extend(REFERENT.to_le_bytes());
        value.extend((REFERENT + 4).to_le_bytes());
        value.extend(SHA256.to_le_bytes());
        let mut own = Vec::with_capacity(of_permissions.encoded_len());
        of_permissions.encode(&mut own);
        put_hash(&mut value, &crypto::sha256(&own));
        value.extend(DESCRIPTION);
        value.resize(value.len().next_multiple_of(4), 0);
        // The time is always 0.
        value.extend([0; 8]);
        put_hash(&mut value, fingerprint);
        value.resize(value.len().next_multiple_of(4), 0);
        put_descriptor(&mut value, descriptor);
        value
    }
}

fn put_hash(value: &mut Vec<u8>, hash: &[u8; HASH_LEN]) {
    value.extend(hash);
    value.extend([0; HASH_FIELD_LEN - HASH_LEN]);
}

/// Appends a descriptor with offsets from the start of the value.
fn put_descriptor(value: &mut Vec<u8>, descriptor: &SecurityDescriptor) {
    let start = value.len();
    descriptor.encode(value);
    let base = u32::try_from(start).expect("the structure before the descriptor is short");
    let offsets = &mut value[start + OFFSETS_AT..start + DESCRIPTOR_HEADER_LEN];
    for field in offsets.as_chunks_mut::<4>().0 {
        let offset = u32::from_le_bytes(*field);
        if offset != 0 {
            *field = (offset + base).to_le_bytes();
        }
    }
}

/// Reads the descriptor. Its offsets count from the start of the value.
fn descriptor(ndr: &Ndr<'_>) -> Option<SecurityDescriptor> {
    let (start, rest) = ndr.rest(4)?;
    let mut bytes = rest.to_vec();
    let base = u32::try_from(start).ok()?;
    let offsets = bytes.get_mut(OFFSETS_AT..DESCRIPTOR_HEADER_LEN)?;
    for field in offsets.as_chunks_mut::<4>().0 {
        let offset = u32::from_le_bytes(*field);
        if offset != 0 {
            *field = offset.checked_sub(base)?.to_le_bytes();
        }
    }
    // Samba writes the flag SELF_RELATIVE in most versions only.
    let control = bytes.get_mut(3)?;
    *control |= 0x80;
    SecurityDescriptor::decode(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::access::AccessMask;
    use wire::security::{Ace, AceFlags, Acl, Sid};

    use super::*;

    fn descriptor(sddl: &str) -> SecurityDescriptor {
        sddl.parse().expect("SDDL")
    }

    fn sample() -> SecurityDescriptor {
        descriptor("O:S-1-22-1-2001G:S-1-22-2-100D:PAI(A;OICI;FA;;;WD)S:(AU;SAFA;FA;;;WD)")
    }

    /// The attribute that smbd 4.25.1 with acl_xattr wrote for a new file of the user alice.
    const OF_SMBD: &str = "\
         040004000000020004000200010077c1f2ecd96c3c70cc58949cda3fd78cecfdc6422408e96307d7\
         33523a6d8d920000000000000000000000000000000000000000000000000000000000000000706f\
         7369785f61636c00000000000000000015d5fc4e12723a54b668b98d75795a7147cc4ff52433169d\
         6ec27fab1c9802380000000000000000000000000000000000000000000000000000000000000000\
         01000480b4000000d000000000000000ec000000010500000000000515000000a706d87243260cda\
         67e7cf1ae8030000010500000000000515000000a706d87243260cda67e7cf1a0102000002006400\
         0300000000002400ff011f00010500000000000515000000a706d87243260cda67e7cf1ae8030000\
         00002400a9001200010500000000000515000000a706d87243260cda67e7cf1a0102000000001400\
         a9001200010100000000000100000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16);
        digits.map(|pair| byte(pair).expect("hex")).collect()
    }

    #[test]
    fn the_value_of_samba_is_read_and_written() {
        let value = bytes(OF_SMBD);
        let read = NtAcl::decode(&value).expect("a value");
        let domain = "S-1-5-21-1926760103-3658229315-449832807";
        let expected = format!(
            "O:{domain}-1000G:{domain}-513D:(A;;FA;;;{domain}-1000)(A;;0x1200a9;;;{domain}-513)\
             (A;;0x1200a9;;;WD)"
        );
        assert_eq!(read.descriptor.to_sddl().expect("printable"), expected);
        let fingerprint = read.fingerprint.expect("version 4");
        assert_eq!(fingerprint[..4], [0x15, 0xD5, 0xFC, 0x4E]);
        let mut written = NtAcl::encode(&read.descriptor, &read.descriptor, &fingerprint);
        // The hash of the descriptor that Samba derives from the permissions.
        written[14..46].copy_from_slice(&value[14..46]);
        assert_eq!(written, value);
    }

    #[test]
    fn version_4_is_written_and_read() {
        let fingerprint = [7; HASH_LEN];
        let value = NtAcl::encode(&sample(), &descriptor("D:"), &fingerprint);
        assert_eq!(value[..8], [4, 0, 4, 0, 0, 0, 2, 0]);
        assert_eq!(value[78..88], *DESCRIPTION);
        assert_eq!(value[160], 1, "the descriptor");
        assert_eq!(value[164..168], 180_u32.to_le_bytes(), "its owner");
        let expected = NtAcl {
            descriptor: sample(),
            fingerprint: Some(fingerprint),
        };
        assert_eq!(NtAcl::decode(&value), Some(expected));
    }

    /// A value of an old version: the structure before the descriptor, and the descriptor.
    fn old(version: u16, structure: &[u8]) -> Vec<u8> {
        let mut value = Vec::new();
        value.extend(version.to_le_bytes());
        value.extend(version.to_le_bytes());
        value.extend(REFERENT.to_le_bytes());
        value.extend(structure);
        value.resize(value.len().next_multiple_of(4), 0);
        put_descriptor(&mut value, &sample());
        value
    }

    #[test]
    fn versions_1_to_3_are_read() {
        let pointer = 0x0002_0004_u32.to_le_bytes();
        let expected = NtAcl {
            descriptor: sample(),
            fingerprint: None,
        };
        for value in [
            old(1, &[]),
            old(2, &[&pointer[..], &[9; 16]].concat()),
            old(3, &[&pointer[..], &[1, 0], &[9; 64]].concat()),
        ] {
            assert_eq!(NtAcl::decode(&value), Some(expected.clone()), "{value:?}");
        }
    }

    #[test]
    fn no_value_is_read_beyond_its_end() {
        let value = NtAcl::encode(&sample(), &sample(), &[7; HASH_LEN]);
        for end in 0..value.len() {
            assert_eq!(NtAcl::decode(&value[..end]), None, "{end} bytes");
        }
        assert_eq!(NtAcl::decode(&[0xFF; 200]), None);
    }

    proptest! {
        #[test]
        fn wild_bytes_do_not_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            end in any::<prop::sample::Index>(),
        ) {
            let mut value = NtAcl::encode(&sample(), &sample(), &[7; HASH_LEN]);
            for (at, byte) in changes {
                value[at.index(200)] = byte;
            }
            value.truncate(end.index(2 * value.len()));
            if let Some(found) = NtAcl::decode(&value) {
                survives(&found)?;
            }
        }

        #[test]
        fn any_descriptor_survives(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            parts in 0_u8..16,
        ) {
            let mut descriptor = sample();
            let (owner, group) = (bytes.len() as u32, u32::from(parts));
            descriptor.owner = (parts & 1 != 0).then(|| Sid::unix_user(owner));
            descriptor.group = (parts & 2 != 0).then(|| Sid::unix_group(group));
            descriptor.dacl = (parts & 4 != 0).then(|| list(&bytes));
            descriptor.sacl = descriptor.sacl.filter(|_| parts & 8 != 0);
            let fingerprint = Some([parts; HASH_LEN]);
            survives(&NtAcl { descriptor, fingerprint })?;
        }
    }

    /// A list with an entry for each byte.
    fn list(bytes: &[u8]) -> Acl {
        let mut list = Acl::new();
        for (index, byte) in bytes.iter().enumerate() {
            let (mask, flags) = (AccessMask(u32::from(*byte)), AceFlags(byte & 0x1F));
            let sid = Sid::unix_user(index as u32);
            let fits = match byte & 1 {
                0 => list.push(Ace::allow(sid, mask, flags)),
                _ => list.push(Ace::deny(sid, mask, flags)),
            };
            assert!(fits, "the list is short");
        }
        list
    }

    /// A stored descriptor is the same after it is encoded.
    fn survives(stored: &NtAcl) -> Result<(), TestCaseError> {
        let fingerprint = stored.fingerprint.unwrap_or([0; HASH_LEN]);
        let value = NtAcl::encode(&stored.descriptor, &sample(), &fingerprint);
        let again = NtAcl::decode(&value).map(|found| found.descriptor);
        prop_assert_eq!(again, Some(stored.descriptor.clone()));
        Ok(())
    }
}

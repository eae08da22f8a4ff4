//! Names of SIDs. Servers are not asked for names yet: well-known SIDs and the SIDs of Unix
//! accounts have names, every other SID is shown as S-1-...

use smbeam_client::{Sid, WELL_KNOWN_SIDS};

/// Domains that may stand before a well-known name.
const DOMAINS: [&str; 3] = ["BUILTIN\\", "NT AUTHORITY\\", "\\"];
/// The domain of a Unix user, as Samba names it.
const UNIX_USER: &str = "Unix User\\";
/// The domain of a Unix group, as Samba names it.
const UNIX_GROUP: &str = "Unix Group\\";

/// The name of a SID; `None` if it has no known one.
pub(super) fn name_of(sid: &Sid) -> Option<String> {
    if let Some(known) = WELL_KNOWN_SIDS.iter().find(|known| known.sid == *sid) {
        return Some(known.name.to_owned());
    }
    if let Some(uid) = sid.to_unix_user() {
        return Some(format!("{UNIX_USER}{uid}"));
    }
    sid.to_unix_group().map(|gid| format!("{UNIX_GROUP}{gid}"))
}

/// Parses a SID or a known name.
pub(super) fn parse(text: &str) -> Result<Sid, String> {
    if let Ok(sid) = text.parse() {
        return Ok(sid);
    }
    let id = |digits: &str| digits.parse::<u32>().ok();
    for (prefix, make) in [
        (UNIX_USER, Sid::unix_user as fn(u32) -> Sid),
        ("uid=", Sid::unix_user),
        (UNIX_GROUP, Sid::unix_group),
        ("gid=", Sid::unix_group),
    ] {
        if let Some(sid) = without_prefix(text, prefix).and_then(id).map(make) {
            return Ok(sid);
        }
    }
    let name = DOMAINS
        .iter()
        .find_map(|domain| without_prefix(text, domain))
        .unwrap_or(text);
    WELL_KNOWN_SIDS
        .iter()
        .find(|known| known.name.eq_ignore_ascii_case(name))
        .map(|known| known.sid)
        .ok_or_else(|| {
            format!(
                "`{text}` is not a SID or a known name: write S-1-..., uid=NUMBER, gid=NUMBER, \
                 or a well-known name such as Everyone"
            )
        })
}

fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start
        .eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a SID, or the SID itself.
    fn shown(sid: &Sid) -> String {
        name_of(sid).unwrap_or_else(|| sid.to_string())
    }

    #[test]
    fn names_that_are_shown_are_parsed() {
        let others = [Sid::unix_user(2001), Sid::unix_group(7)];
        for sid in WELL_KNOWN_SIDS.iter().map(|known| known.sid).chain(others) {
            assert_eq!(parse(&shown(&sid)), Ok(sid));
            assert_eq!(parse(&sid.to_string()), Ok(sid));
        }
        let other: Sid = "S-1-5-21-1-2-3-1000".parse().expect("a SID");
        assert_eq!(name_of(&other), None);
        assert_eq!(parse(&shown(&other)), Ok(other));
    }

    #[test]
    fn case_and_domain_do_not_matter() {
        assert_eq!(parse("everyone"), Ok(Sid::EVERYONE));
        let administrators = parse("builtin\\administrators");
        assert_eq!(administrators, Ok(Sid::BUILTIN_ADMINISTRATORS));
        assert_eq!(parse("UID=5"), Ok(Sid::unix_user(5)));
        for wrong in ["", "alice", "uid=", "uid=x", "S-1-x", "BUILTIN\\"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

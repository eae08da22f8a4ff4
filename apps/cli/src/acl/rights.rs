//! Access rights and inheritance in words.

use smbeam_client::{AccessMask, AceFlags};

/// Sets of rights, the largest first. `modify` and `read-execute` are the ones of Windows.
const SETS: [(&str, AccessMask); 6] = [
    ("full", AccessMask::FILE_ALL_ACCESS),
    ("modify", AccessMask(0x0013_01BF)),
    ("read-execute", AccessMask(0x0012_00A9)),
    ("read", AccessMask::FILE_GENERIC_READ),
    ("write", AccessMask::FILE_GENERIC_WRITE),
    ("execute", AccessMask::FILE_GENERIC_EXECUTE),
];
/// Rights that several sets contain, and that do not make one: READ_CONTROL, SYNCHRONIZE and
/// FILE_READ_ATTRIBUTES.
const SHARED: AccessMask = AccessMask(0x0012_0080);
/// Single rights.
const SINGLE: [(&str, AccessMask); 18] = [
    ("read-data", AccessMask::FILE_READ_DATA),
    ("write-data", AccessMask::FILE_WRITE_DATA),
    ("append-data", AccessMask::FILE_APPEND_DATA),
    ("read-ea", AccessMask::FILE_READ_EA),
    ("write-ea", AccessMask::FILE_WRITE_EA),
    ("traverse", AccessMask::FILE_TRAVERSE),
    ("delete-child", AccessMask::FILE_DELETE_CHILD),
    ("read-attributes", AccessMask::FILE_READ_ATTRIBUTES),
    ("write-attributes", AccessMask::FILE_WRITE_ATTRIBUTES),
    ("delete", AccessMask::DELETE),
    ("read-permissions", AccessMask::READ_CONTROL),
    ("change-permissions", AccessMask::WRITE_DAC),
    ("take-ownership", AccessMask::WRITE_OWNER),
    ("synchronize", AccessMask::SYNCHRONIZE),
    ("generic-all", AccessMask::GENERIC_ALL),
    ("generic-execute", AccessMask::GENERIC_EXECUTE),
    ("generic-write", AccessMask::GENERIC_WRITE),
    ("generic-read", AccessMask::GENERIC_READ),
];
/// Words for inheritance flags.
const FLAGS: [(&str, AceFlags); 4] = [
    ("files", AceFlags::OBJECT_INHERIT),
    ("directories", AceFlags::CONTAINER_INHERIT),
    ("once", AceFlags::NO_PROPAGATE_INHERIT),
    ("only", AceFlags::INHERIT_ONLY),
];

/// The words for a mask: sets first, then single rights, then a number for unknown bits.
pub(super) fn words(mask: AccessMask) -> Vec<String> {
    let mut words = Vec::new();
    let mut left = mask;
    for (word, set) in SETS {
        let adds = set.without(SHARED).intersects(left);
        if mask.contains(set) && adds {
            words.push(word.to_owned());
            left = left.without(set);
        }
    }
    for (word, right) in SINGLE {
        if left.intersects(right) {
            words.push(word.to_owned());
            left = left.without(right);
        }
    }
    if !left.is_empty() {
        words.push(format!("{:#x}", left.0));
    }
    if words.is_empty() {
        words.push("none".to_owned());
    }
    words
}

/// Parses words or numbers with commas between them.
pub(super) fn parse(text: &str) -> Result<AccessMask, String> {
    let mut mask = AccessMask::NONE;
    for word in text.split(',') {
        let named = SETS
            .iter()
            .chain(&SINGLE)
            .find(|(name, _)| name.eq_ignore_ascii_case(word));
        let number = || {
            let digits = word.strip_prefix("0x")?;
            u32::from_str_radix(digits, 16).ok().map(AccessMask)
        };
        mask |= match named {
            Some((_, right)) => *right,
            None => number().ok_or_else(|| unknown(word))?,
        };
    }
    Ok(mask)
}

fn unknown(word: &str) -> String {
    let names = SETS.iter().chain(&SINGLE).map(|(name, _)| *name);
    let names = names.collect::<Vec<_>>().join(", ");
    format!("`{word}` is not a right: write a number such as 0x120089, or one of {names}")
}

/// The words for the inheritance of an entry.
pub(super) fn inheritance_words(flags: AceFlags) -> Vec<&'static str> {
    let is_set = |(_, flag): &&(&str, AceFlags)| flags.contains(*flag);
    FLAGS.iter().filter(is_set).map(|(word, _)| *word).collect()
}

/// Parses words for inheritance with commas between them.
pub(super) fn parse_inheritance(text: &str) -> Result<AceFlags, String> {
    let mut flags = AceFlags::NONE;
    for word in text.split(',') {
        flags |= match word {
            "none" => AceFlags::NONE,
            "all" => AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT,
            word => match FLAGS.iter().find(|(name, _)| *name == word) {
                Some((_, flag)) => *flag,
                None => {
                    return Err(format!(
                        "`{word}` is not an inheritance: write none, all, files, directories, \
                         once, or only"
                    ));
                }
            },
        };
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_masks() {
        for (mask, text) in [
            (0x001F_01FF, "full"),
            (0x0013_01BF, "modify"),
            (0x0012_00A9, "read-execute"),
            (0x0012_019F, "read,write"),
            (0x0012_0089, "read"),
            (
                0x0012_0088,
                "read-ea,read-attributes,read-permissions,synchronize",
            ),
            (0x0016_0089, "read,change-permissions"),
            (0x0000_0001, "read-data"),
            (0x8000_0000, "generic-read"),
            (0x0800_0001, "read-data,0x8000000"),
            (0, "none"),
        ] {
            assert_eq!(words(AccessMask(mask)).join(","), text);
            if text != "none" {
                assert_eq!(parse(text), Ok(AccessMask(mask)), "{text}");
            }
        }
        assert!(parse("reading").is_err() && parse("").is_err() && parse("12").is_err());
        assert_eq!(parse("FULL"), Ok(AccessMask::FILE_ALL_ACCESS));
    }

    #[test]
    fn words_stand_for_inheritance() {
        let all = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT;
        assert_eq!(parse_inheritance("all"), Ok(all));
        assert_eq!(inheritance_words(all), ["files", "directories"]);
        let only = all | AceFlags::INHERIT_ONLY;
        assert_eq!(parse_inheritance("files,directories,only"), Ok(only));
        assert_eq!(parse_inheritance("none"), Ok(AceFlags::NONE));
        assert!(parse_inheritance("some").is_err());
    }
}

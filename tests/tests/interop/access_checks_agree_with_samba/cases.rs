//! The descriptors of the test, as SDDL: `@alice` is a user and `%crew` a group.

/// A file in a directory, both with the same owner.
#[derive(Debug)]
pub(super) struct Case {
    /// The name, which is that of the directory.
    pub(super) name: &'static str,
    pub(super) owner: &'static str,
    pub(super) file_sddl: &'static str,
    /// The descriptor of the directory; none: it has only its mode.
    pub(super) directory_sddl: Option<&'static str>,
    pub(super) directory_mode: u32,
}

impl Case {
    /// The path of the file in the share.
    pub(super) fn file(&self) -> String {
        format!(r"{}\file", self.name)
    }

    const fn of_owner(self, owner: &'static str) -> Self {
        Self { owner, ..self }
    }

    const fn in_directory(self, sddl: &'static str) -> Self {
        Self {
            directory_sddl: Some(sddl),
            ..self
        }
    }

    const fn in_mode(self, directory_mode: u32) -> Self {
        Self {
            directory_mode,
            ..self
        }
    }
}

const fn case(name: &'static str, file_sddl: &'static str) -> Case {
    Case {
        name,
        owner: "alice",
        file_sddl,
        directory_sddl: None,
        directory_mode: 0o777,
    }
}

pub(super) const CASES: [Case; 40] = [
    // Lists without entries, and lists of one entry.
    case("empty", "D:"),
    case("null", "D:NO_ACCESS_CONTROL"),
    case("everyone", "D:(A;;FA;;;WD)"),
    case("authenticated", "D:(A;;FA;;;AU)"),
    case("users", "D:(A;;FR;;;BU)"),
    case("network", "D:(A;;FRFW;;;NU)"),
    case("guests", "D:(A;;FR;;;BG)(A;;FW;;;AN)"),
    case("others-alone", "D:(A;;FA;;;@judy)"),
    case("group-alone", "D:(A;;FRFX;;;%crew)"),
    case("administrators", "D:(A;;FA;;;BA)(A;;FA;;;SY)"),
    // Sets of rights.
    case("read-only", "D:(A;;FR;;;WD)"),
    case("write-only", "D:(A;;FW;;;WD)"),
    case("execute-only", "D:(A;;FX;;;WD)"),
    case("append-only", "D:(A;;0x4;;;WD)"),
    case("delete-only", "D:(A;;SD;;;WD)").in_mode(0o755),
    case("attributes-only", "D:(A;;0x180;;;WD)"),
    case("eas-only", "D:(A;;0x18;;;WD)"),
    case("owner-change", "D:(A;;WO;;;%crew)(A;;RC;;;WD)"),
    case("list-change", "D:(A;;WD;;;%crew)(A;;FR;;;@bob)"),
    case(
        "generic",
        "D:(A;;GR;;;WD)(A;;GW;;;%crew)(A;;GX;;;@bob)(A;;GA;;;@judy)",
    ),
    case("all-bits", "D:(A;;0xFDFFFFFF;;;WD)"),
    // Entries that deny, and the order of entries.
    case("deny-user", "D:(D;;FW;;;@bob)(A;;FA;;;WD)"),
    case("deny-late", "D:(A;;FA;;;WD)(D;;FW;;;@bob)"),
    case("deny-group", "D:(D;;FR;;;%crew)(A;;FA;;;WD)"),
    case(
        "deny-group-of-member",
        "D:(D;;0x3;;;%crew)(A;;FA;;;@dave)(A;;FR;;;%band)",
    ),
    case(
        "not-canonical",
        "D:(A;;FR;;;%crew)(D;;FA;;;%band)(A;;FA;;;WD)",
    ),
    case(
        "each-right-once",
        "D:(A;;0x1;;;WD)(D;;0x7;;;%crew)(A;;0xF;;;WD)(D;;0x1F;;;WD)",
    ),
    case("deny-all", "D:(D;;FA;;;WD)(A;;FA;;;@bob)"),
    case("deny-owner", "D:(D;;FA;;;@alice)(A;;FA;;;WD)"),
    case("deny-generic", "D:(D;;GW;;;%band)(A;;GA;;;AU)"),
    // The owner, the creator and the group of the file.
    case("owner-rights", "D:(A;;FR;;;OW)(A;;FW;;;WD)"),
    case("deny-owner-rights", "D:(D;;WDRC;;;OW)(A;;FA;;;WD)"),
    case("creator", "D:(A;;FA;;;CO)(A;;FA;;;CG)(A;;FR;;;%alices)"),
    case("of-bob", "D:(A;;FR;;;%crew)(A;;FX;;;@alice)").of_owner("bob"),
    // Entries for new files and inherited entries.
    case("inherit-only", "D:(A;OICIIO;FA;;;WD)(A;;FR;;;%crew)"),
    case(
        "protected",
        "D:P(A;;FA;;;@alice)(A;ID;FR;;;%band)(A;;FW;;;@bob)",
    ),
    // The directory decides about the deletion.
    case("delete-child", "D:(A;;FR;;;WD)")
        .in_directory("D:(A;;FA;;;@alice)(A;;0x1200ef;;;%crew)(A;;0x1200a9;;;WD)"),
    case("no-delete-child", "D:(A;;FRSD;;;WD)")
        .in_directory("D:(A;;FA;;;@alice)(A;;0x1200a9;;;WD)"),
    case("closed-directory", "D:(A;;FA;;;WD)").in_mode(0o755),
    case(
        "many-entries",
        "D:(D;;0x2;;;@carol)(D;;0x4;;;@dave)(A;;FR;;;@carol)(A;;FRFW;;;@dave)\
         (A;;FX;;;@erin)(A;;0x100;;;@frank)(A;;SD;;;@grace)(A;;RC;;;@heidi)(A;;WD;;;@ivan)",
    ),
];

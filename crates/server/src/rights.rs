//! The names of access rights, for people.

use wire::access::AccessMask;

/// Returns the names of the rights of an access mask, such as `write` and `change-permissions`.
pub(crate) fn right_names(rights: AccessMask) -> Vec<&'static str> {
    let names = [
        (AccessMask::FILE_READ_DATA, "read"),
        (AccessMask::FILE_WRITE_DATA, "write"),
        (AccessMask::FILE_APPEND_DATA, "append"),
        (AccessMask::FILE_EXECUTE, "execute"),
        (AccessMask::FILE_READ_EA, "read-ea"),
        (AccessMask::FILE_WRITE_EA, "write-ea"),
        (AccessMask::FILE_DELETE_CHILD, "delete-child"),
        (AccessMask::FILE_READ_ATTRIBUTES, "read-attributes"),
        (AccessMask::FILE_WRITE_ATTRIBUTES, "write-attributes"),
        (AccessMask::DELETE, "delete"),
        (AccessMask::READ_CONTROL, "read-permissions"),
        (AccessMask::WRITE_DAC, "change-permissions"),
        (AccessMask::WRITE_OWNER, "take-ownership"),
        (AccessMask::SYNCHRONIZE, "synchronize"),
        (AccessMask::ACCESS_SYSTEM_SECURITY, "system-security"),
        (AccessMask::MAXIMUM_ALLOWED, "maximum"),
        (AccessMask::GENERIC_ALL, "generic-all"),
        (AccessMask::GENERIC_EXECUTE, "generic-execute"),
        (AccessMask::GENERIC_WRITE, "generic-write"),
        (AccessMask::GENERIC_READ, "generic-read"),
    ];
    let held = names.iter().filter(|(right, _)| rights.contains(*right));
    held.map(|(_, name)| *name).collect()
}

//! The command as the helper of mount(8): `mount.smbeam` for the type `smbeam` in /etc/fstab.
//!
//! mount(8) calls `mount.smbeam SOURCE DIR [-sfnv] [-N namespace] [-o options] [-t type.subtype]`.

use std::ffi::OsString;
use std::path::Path;

/// The name of the helper.
const NAME: &str = "mount.smbeam";

/// Returns the arguments of the process. Those of the helper become those of `smbeam mount`.
pub(crate) fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let given: Vec<_> = given.collect();
    let is_helper = given
        .first()
        .and_then(|name| Path::new(name).file_name())
        .is_some_and(|name| name == NAME);
    match is_helper {
        true => translated(&given),
        false => given,
    }
}

fn translated(given: &[OsString]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["smbeam".into(), "mount".into()];
    let mut rest = given.iter().skip(1);
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            // Sloppy options, no entry in mtab, verbose: nothing to do here.
            Some(flags) if is_flags(flags) => {}
            // The namespace of the mount, and the type that led here.
            Some("-N" | "-t") => {
                rest.next();
            }
            Some("-o") => {
                arguments.push("-o".into());
                arguments.extend(rest.next().cloned());
            }
            _ => arguments.push(argument.clone()),
        }
    }
    arguments
}

/// Whether an argument has flags without a meaning for the command.
fn is_flags(argument: &str) -> bool {
    let flags = argument.strip_prefix('-');
    flags.is_some_and(|it| !it.is_empty() && it.chars().all(|flag| "snv".contains(flag)))
}

/// The arguments as text.
#[cfg(test)]
fn texts(arguments: &[OsString]) -> Vec<&str> {
    arguments.iter().filter_map(|it| it.to_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Vec<OsString> {
        arguments(words.iter().map(OsString::from))
    }

    #[test]
    fn the_call_of_mount_becomes_the_command() {
        let words = [
            "/sbin/mount.smbeam",
            "//h/s",
            "/mnt",
            "-sv",
            "-o",
            "ro,uid=1",
        ];
        assert_eq!(texts(&of(&words))[..3], ["smbeam", "mount", "//h/s"],);
        let words = [
            "mount.smbeam",
            "//h/s",
            "/mnt",
            "-n",
            "-t",
            "smbeam",
            "-o",
            "ro",
        ];
        assert_eq!(
            texts(&of(&words)),
            ["smbeam", "mount", "//h/s", "/mnt", "-o", "ro"]
        );
    }

    #[test]
    fn other_names_stay() {
        let words = ["smbeam", "ls", "-n"];
        assert_eq!(texts(&of(&words)), words);
    }
}

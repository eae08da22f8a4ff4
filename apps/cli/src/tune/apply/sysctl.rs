//! Parameters of the kernel below /proc/sys.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// Pairs of parameters of which at most one is not 0: to set one sets the other to 0.
/// <https://docs.kernel.org/admin-guide/sysctl/vm.html>
const PAIRS: [[&str; 2]; 2] = [
    ["vm.dirty_bytes", "vm.dirty_ratio"],
    ["vm.dirty_background_bytes", "vm.dirty_background_ratio"],
];

fn path(key: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(key.replace('.', "/"))
}

/// The parameter that changes with this one; `None` for most.
pub(super) fn counterpart(key: &str) -> Option<&'static str> {
    PAIRS.iter().find_map(|[one, other]| match key {
        _ if key == *one => Some(*other),
        _ if key == *other => Some(*one),
        _ => None,
    })
}

/// The value of a parameter, without the end of its line.
pub(super) fn read(key: &str) -> Outcome<String> {
    let path = path(key);
    let text = fs::read_to_string(&path);
    let text = text.map_err(|error| Failure::local(&path.display(), &error))?;
    Ok(text.trim_end().to_owned())
}

/// Sets a parameter.
pub(super) fn write(key: &str, value: &str) -> Outcome {
    let path = path(key);
    fs::write(&path, value).map_err(|error| Failure::local(&path.display(), &error))
}

/// Sets parameters to the values of a record, and checks them.
pub(super) fn restore(values: &BTreeMap<String, String>) -> Outcome {
    for (key, value) in values {
        // The other parameter of a pair makes this one 0.
        let is_zero = value == "0" && counterpart(key).is_some_and(|key| values.contains_key(key));
        if !is_zero {
            write(key, value)?;
        }
    }
    for (key, value) in values {
        let present = read(key)?;
        if present != *value {
            let why = format!("is {present} and was {value} before --apply");
            return Err(Failure::new(Exit::Failed, key, why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_known() {
        assert_eq!(counterpart("vm.dirty_ratio"), Some("vm.dirty_bytes"));
        assert_eq!(counterpart("vm.dirty_bytes"), Some("vm.dirty_ratio"));
        assert_eq!(counterpart("vm.swappiness"), None);
        assert!(read("vm.swappiness").is_ok());
        assert!(read("vm.no_such_parameter").is_err());
    }
}

//! Environment variables as keys of the configuration.
//!
//! `SMBEAM_SERVER__LISTEN` is `server.listen`, and `SMBEAM_SHARE_DATA__PATH` the `path` of the
//! share `data`. With `_FILE` at its end, a variable names a file with the value: for secrets.

use toml::Value;
use toml::de::DeValue;

use super::alias::ALIASES;
use super::near::nearest;
use super::schema::{Key, Kind, keys};

const PREFIX: &str = "SMBEAM_";
const SHARE: &str = "SHARE_";
const FILE: &str = "_FILE";
/// Other variables of smbeam with the prefix of a section.
const OTHERS: [&str; 2] = ["SMBEAM_RDMA_FAULTS", "SMBEAM_RDMA_MISSING"];
/// Longest file of a value in bytes.
const FILE_MAX: u64 = 64 << 10;

/// Whether a variable has the form of a key: then an unknown one is an error.
pub(super) fn is_meant(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let sections = super::SECTIONS.iter().map(|section| section.to_uppercase());
    let mut sections = sections.map(|section| format!("{section}_"));
    let is_key = rest.contains("__") || sections.any(|section| rest.starts_with(&section));
    is_key && !OTHERS.contains(&name)
}

/// The part of a variable that names a share, in upper case. Characters that a variable cannot
/// have are underscores.
pub(super) fn share_part(name: &str) -> String {
    let part = |c: char| {
        if c.is_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    name.chars().map(part).collect()
}

/// The variable for a key, such as `SMBEAM_SERVER__LISTEN`. `share` is the name of the share for
/// keys of shares.
pub(super) fn variable(key: &Key, share: &str) -> String {
    let name = key.key.to_uppercase();
    match &*key.section {
        "share" => format!("{PREFIX}{SHARE}{}__{name}", share_part(share)),
        section => format!("{PREFIX}{}__{name}", section.to_uppercase()),
    }
}

/// The text of a configuration file with the value of a variable. `all` are all variables.
///
/// # Errors
/// What is wrong with the variable.
pub(super) fn text(name: &str, value: &str, all: &[(String, String)]) -> Result<String, String> {
    let share = share_of(name);
    let named = keys()
        .into_iter()
        .map(|key| (variable(&key, share.unwrap_or("NAME")), key));
    let mut named: Vec<(String, Key)> = named.collect();
    named.extend(other_names(share, &named));
    let find = |name: &str| {
        named
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, key)| key)
    };
    let (key, value) = match (find(name), name.strip_suffix(FILE).and_then(find)) {
        (Some(key), _) => (key, value.to_owned()),
        (None, Some(key)) => {
            let plain = name.strip_suffix(FILE).unwrap_or(name);
            if all.iter().any(|(other, _)| other == plain) {
                return Err(format!("{plain} is set, too: use one of them"));
            }
            (key, read(value)?)
        }
        (None, None) => return Err(unknown(name, &named)),
    };
    if (&*key.section, &*key.key) == ("share", "name") {
        return Err("the name of a share is a part of the variable".to_owned());
    }
    let value = toml_value(key, &value)?;
    let line = format!("{} = {value}\n", key.key);
    Ok(match share {
        Some(share) => {
            let name = Value::String(share.to_lowercase());
            format!("[[share]]\nname = {name}\n{line}")
        }
        None => format!("[{}]\n{line}", key.section),
    })
}

/// The variables with other names of keys.
fn other_names(share: Option<&str>, named: &[(String, Key)]) -> Vec<(String, Key)> {
    let aliases = ALIASES.iter().filter_map(|(alias, name)| {
        let key = named.iter().map(|(_, key)| key);
        let key = key
            .filter(|key| key.section == "share")
            .find(|key| key.key == *name)?;
        let other = Key {
            key: (*alias).to_owned(),
            ..key.clone()
        };
        Some((variable(&other, share.unwrap_or("NAME")), key.clone()))
    });
    aliases.collect()
}

/// The name of the share that a variable means.
fn share_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(PREFIX)?.strip_prefix(SHARE)?;
    let (share, _) = rest.rsplit_once("__")?;
    (!share.is_empty()).then_some(share)
}

fn unknown(name: &str, named: &[(String, Key)]) -> String {
    // The common start would make every name look alike.
    let rest = |name: &str| name.strip_prefix(PREFIX).unwrap_or_default().to_owned();
    let names: Vec<String> = named.iter().map(|(known, _)| rest(known)).collect();
    match nearest(&rest(name), names.iter().map(String::as_str)) {
        Some(near) => format!("no key of the configuration: did you mean {PREFIX}{near}?"),
        None => "no key of the configuration: use SMBEAM_SECTION__KEY or SMBEAM_SHARE_NAME__KEY"
            .to_owned(),
    }
}

/// The content of a file, without the end of its last line.
fn read(path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot read {path}: {error}");
    let found = std::fs::metadata(path).map_err(failed)?;
    if found.len() > FILE_MAX {
        return Err(format!("{path} is longer than {} KiB", FILE_MAX >> 10));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The value of a key in TOML. A value of another type stays a text: the parser reports it.
fn toml_value(key: &Key, value: &str) -> Result<String, String> {
    let text = || Value::String(value.to_owned()).to_string();
    let trimmed = value.trim();
    Ok(match key.kind {
        Kind::Text => text(),
        Kind::Integer => match trimmed.parse::<i64>() {
            Ok(number) => number.to_string(),
            Err(_) => text(),
        },
        Kind::Boolean => match trimmed {
            "true" | "false" => trimmed.to_owned(),
            _ => text(),
        },
        Kind::List if trimmed.starts_with('[') => match DeValue::parse(trimmed) {
            Ok(_) => trimmed.to_owned(),
            Err(error) => return Err(format!("{}: not a list: {}", key.name, error.message())),
        },
        Kind::List => {
            let items = trimmed
                .split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty());
            let items = items.map(|item| Value::String(item.to_owned()));
            Value::Array(items.collect()).to_string()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(name: &str, value: &str) -> Result<String, String> {
        text(name, value, &[])
    }

    #[test]
    fn only_variables_with_the_form_of_a_key_count() {
        for name in ["SMBEAM_SERVER__LISTEN", "SMBEAM_X__Y", "SMBEAM_LOG_LEVEL"] {
            assert!(is_meant(name), "{name}");
        }
        for name in [
            "SMBEAM_LOG",
            "SMBEAM_RDMA",
            "SMBEAM_PASSWORD",
            "PATH",
            "SMBEAM_RDMA_FAULTS",
        ] {
            assert!(!is_meant(name), "{name}");
        }
    }

    #[test]
    fn values_have_the_type_of_their_key() {
        let good = |name: &str, value: &str| text_of(name, value).expect("good");
        let listen = good("SMBEAM_SERVER__LISTEN", "::1, 192.0.2.7");
        assert_eq!(listen, "[server]\nlisten = [\"::1\", \"192.0.2.7\"]\n");
        let listen = good("SMBEAM_SERVER__LISTEN", "[\"::1\"]");
        assert_eq!(listen, "[server]\nlisten = [\"::1\"]\n");
        assert_eq!(
            good("SMBEAM_SERVER__WORKERS", " 2"),
            "[server]\nworkers = 2\n"
        );
        assert_eq!(good("SMBEAM_SERVER__NAME", "2"), "[server]\nname = \"2\"\n");
        let path = good("SMBEAM_SHARE_MY_DATA__PATH", "/srv/\"x\"");
        assert_eq!(path, "[[share]]\nname = \"my_data\"\npath = '/srv/\"x\"'\n");
        let open = text_of("SMBEAM_SERVER__LISTEN", "[\"::1\"");
        assert!(
            open.expect_err("no end")
                .starts_with("server.listen: not a list: ")
        );
    }

    #[test]
    fn unknown_variables_have_a_near_match() {
        let bad = |name: &str| text_of(name, "1").expect_err("unknown");
        assert!(bad("SMBEAM_SERVER__LISEN").ends_with("did you mean SMBEAM_SERVER__LISTEN?"));
        assert!(bad("SMBEAM_SERVER_LISTEN").ends_with("did you mean SMBEAM_SERVER__LISTEN?"));
        assert!(bad("SMBEAM_SHARE_DATA__PTH").ends_with("did you mean SMBEAM_SHARE_DATA__PATH?"));
        assert!(bad("SMBEAM_SHARE_DATA__NAME").contains("part of the variable"));
        assert!(bad("SMBEAM_QQQQ__ZZZZ").contains("use SMBEAM_SECTION__KEY"));
    }

    #[test]
    fn a_value_may_be_in_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("name");
        std::fs::write(&file, "nas\n").expect("a file");
        let file = file.to_string_lossy();
        let name = text_of("SMBEAM_SERVER__NAME_FILE", &file);
        assert_eq!(name.as_deref(), Ok("[server]\nname = \"nas\"\n"));
        let both = [("SMBEAM_SERVER__NAME".to_owned(), "x".to_owned())];
        let error = text("SMBEAM_SERVER__NAME_FILE", &file, &both).expect_err("both");
        assert!(error.starts_with("SMBEAM_SERVER__NAME is set, too"));
        let error = text_of("SMBEAM_SERVER__NAME_FILE", "/nosuch").expect_err("no file");
        assert!(error.starts_with("cannot read /nosuch: "));
    }
}

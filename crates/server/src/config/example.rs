//! An example of a configuration file, with all keys, their descriptions and their defaults.

use toml::Value;

use super::schema::{Key, Kind, keys};

/// Longest line of a description.
const COLUMNS: usize = 98;

/// Values in the place of defaults, for keys that have none.
const VALUES: [(&str, &str); 32] = [
    ("server.name", "\"nas\""),
    ("server.listen", "[\"192.0.2.7\", \"2001:db8::7\"]"),
    ("server.users", "\"/etc/smbeam/users.toml\""),
    ("server.sid_map", "\"/etc/smbeam/sids\""),
    ("server.state_directory", "\"/var/lib/smbeam\""),
    ("server.control_socket", "\"/run/smbeam/control.sock\""),
    ("quic.certificate", "\"/etc/smbeam/server.pem\""),
    ("quic.key", "\"/etc/smbeam/server.key\""),
    ("quic.state_directory", "\"/var/lib/smbeam\""),
    ("quic.client_certificates", "\"required\""),
    ("quic.client_ca", "\"/etc/smbeam/clients.pem\""),
    ("rdma.provider", "\"verbs\""),
    ("rdma.directory", "\"/run/smbeam/rdma\""),
    ("audit.target", "\"/var/log/smbeam/audit.jsonl\""),
    ("metrics.listen", "\"127.0.0.1:9445\""),
    ("metrics.token", "\"a-secret-of-16-to-1024-characters\""),
    ("metrics.token_file", "\"/etc/smbeam/metrics.token\""),
    ("share.name", "\"data\""),
    ("share.path", "\"/srv/data\""),
    ("share.force_user", "\"smbeam\""),
    ("share.service_account", "\"smbeam\""),
    ("share.valid_users", "[\"alice\", \"@staff\"]"),
    ("share.invalid_users", "[\"@guests\"]"),
    ("share.read_users", "[\"bob\"]"),
    ("share.write_users", "[\"@editors\"]"),
    ("share.hosts_allow", "[\"192.0.2.0/24\", \"2001:db8::/32\"]"),
    ("share.hosts_deny", "[\"198.51.100.7\"]"),
    (
        "security.hosts_allow",
        "[\"192.0.2.0/24\", \"2001:db8::/32\"]",
    ),
    ("security.hosts_deny", "[\"198.51.100.0/24\"]"),
    ("share.audit", "[\"all\"]"),
    ("share.comment", "\"Shared files\""),
    ("quic.names", "[\"nas.example\"]"),
];

/// The first lines.
const HEAD: &str = "\
# A configuration of smbeam with every key. Each line with a key is a comment (#): remove the sign
# to set the key. The values are the defaults, or examples where a key has no default.
#
# Check the file with `smbeam config check FILE`. Apply a change to a running server with
# `smbeam reload`. docs/configuration.md and smbeam.toml(5) have more about the keys.

# Further files, relative to this one. Tables merge, and shares add up.
#include = [\"conf.d/*.toml\"]
";

/// Returns the example as the text of a configuration file. All its keys are comments, so the file
/// has the default of each key.
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    let mut section = String::new();
    for key in keys() {
        if key.section != section {
            section.clone_from(&key.section);
            text.push_str(&match &*section {
                "share" => "\n# A share: repeat this section for each shared directory.\n\
                            #[[share]]\n"
                    .to_owned(),
                section => format!("\n[{section}]\n"),
            });
        }
        text.push_str(&described(&key));
    }
    text
}

fn described(key: &Key) -> String {
    let mut text = String::from("\n");
    for line in wrapped(&key.description) {
        text.push_str(&format!("# {line}\n"));
    }
    if !key.choices.is_empty() {
        text.push_str(&format!("# One of: {}.\n", key.choices.join(", ")));
    }
    text.push_str(&format!("#{} = {}\n", key.key, value(key)));
    text
}

fn value(key: &Key) -> String {
    let of_table = VALUES.iter().find(|(name, _)| *name == key.name);
    match (&key.default, of_table, key.kind) {
        (_, Some((_, value)), _) => (*value).to_owned(),
        (Some(default), None, _) => default.to_string(),
        (None, None, Kind::List) => "[]".to_owned(),
        (None, None, Kind::Integer) => "0".to_owned(),
        (None, None, Kind::Boolean) => "false".to_owned(),
        (None, None, Kind::Text) => Value::String(String::new()).to_string(),
    }
}

/// The lines of a text.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Changes, Config};

    const FILE: &str = include_str!("../../../../smbeam.example.toml");

    #[test]
    fn the_file_has_every_key() {
        assert!(
            FILE == example(),
            "smbeam.example.toml differs: smbeam config example > smbeam.example.toml"
        );
    }

    #[test]
    fn the_file_has_the_default_of_each_key() {
        let path = Path::new("/smbeam.toml");
        let config = Config::parse(path, FILE).expect("a good file");
        let changes = Changes::new(&Config::default(), &config);
        assert!(changes.live().is_empty() && changes.needing_restart().is_empty());
        // Each comment with a key is valid, too.
        let is_key = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
        let set = FILE
            .lines()
            .map(|line| match is_key(&line) && line.len() > 1 {
                true => line.trim_start_matches('#'),
                false => line,
            });
        let set: Vec<&str> = set.filter(|line| !line.starts_with("include")).collect();
        let error = Config::parse(path, &set.join("\n")).err();
        // The files of the certificates do not exist.
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("No such file"), "{error}");
        assert!(set.len() > keys().len());
    }
}

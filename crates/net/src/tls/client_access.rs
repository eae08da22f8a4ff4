//! Access control by client certificate: lists of allowed and denied certificates.
//!
//! \[MS-SMB2\] 3.3.1.18: an entry is compared with each certificate of the chain, from the client's
//! to the root. An entry for an authority includes all certificates that it has issued. A deny
//! entry overrides all allow entries. Windows refuses clients without an allow entry. Here this
//! applies only if the allow list is not empty, so that a deny list works alone.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::certificate::{AlternativeName, Holder};
use super::{DistinguishedName, Fingerprint, FingerprintError, NameError};

/// A rule that selects certificates of clients, an entry in [`AccessLists`]. Its text form is a
/// kind (`sha256:`, `issuer:`, `dns:`, `email:`, `uri:`, `upn:` or `ip:`) and then the value.
#[derive(Clone, Debug)]
pub struct Identifier {
    text: String,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Certificate(Fingerprint),
    Issuer(DistinguishedName),
    Name(AlternativeName),
    /// All hosts directly below a domain.
    HostOf(String),
}

/// Reason why the text of an [`Identifier`], a rule that selects client certificates, is
/// malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentifierError {
    /// The text does not begin with a known kind: the text.
    Kind(String),
    /// The value after the kind is empty: the text.
    Empty(String),
    /// The value after `sha256:` is not a fingerprint: the reason.
    Fingerprint(FingerprintError),
    /// The value after `issuer:` is not a distinguished name: the reason.
    Issuer(NameError),
    /// The value after `ip:` is not an IP address: the value.
    Address(String),
}

impl fmt::Display for IdentifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(text) => write!(
                f,
                "`{text}` does not begin with sha256:, issuer:, dns:, email:, uri:, upn: or ip:"
            ),
            Self::Empty(text) => write!(f, "`{text}` has no value"),
            Self::Fingerprint(error) => write!(f, "{error}"),
            Self::Issuer(error) => write!(f, "{error}"),
            Self::Address(text) => write!(f, "`{text}` is no IP address"),
        }
    }
}

impl std::error::Error for IdentifierError {}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Identifier {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        let text = text.trim();
        let Some((kind, value)) = text.split_once(':') else {
            return Err(IdentifierError::Kind(text.to_owned()));
        };
        let value = value.trim();
        let own = || value.to_owned();
        let what = match kind.trim().to_ascii_lowercase().as_str() {
            "sha256" => What::Certificate(value.parse().map_err(IdentifierError::Fingerprint)?),
            "issuer" => What::Issuer(value.parse().map_err(IdentifierError::Issuer)?),
            "dns" => match value.strip_prefix("*.") {
                Some(domain) => What::HostOf(domain.to_owned()),
                None => What::Name(AlternativeName::Dns(own())),
            },
            "email" => What::Name(AlternativeName::Email(own())),
            "uri" => What::Name(AlternativeName::Uri(own())),
            "upn" => What::Name(AlternativeName::UserPrincipalName(own())),
            "ip" => {
                let address: Result<IpAddr, _> = value.parse();
                let address = address.map_err(|_| IdentifierError::Address(own()))?;
                What::Name(AlternativeName::Address(address))
            }
            _ => return Err(IdentifierError::Kind(text.to_owned())),
        };
        if value.is_empty() {
            return Err(IdentifierError::Empty(text.to_owned()));
        }
        let text = text.to_owned();
        Ok(Self { text, what })
    }
}

impl Identifier {
    fn names(&self, holder: &Holder) -> bool {
        match &self.what {
            What::Certificate(fingerprint) => *fingerprint == holder.fingerprint,
            What::Issuer(issuer) => issuer.is(&holder.issuer),
            What::Name(name) => holder.names.iter().any(|own| is_same(own, name)),
            What::HostOf(domain) => holder.names.iter().any(|own| match own {
                AlternativeName::Dns(host) => is_host_of(host, domain),
                _ => false,
            }),
        }
    }
}

/// Case counts in URIs. It does not count in host names, and by convention not in e-mail addresses
/// and accounts.
fn is_same(one: &AlternativeName, other: &AlternativeName) -> bool {
    use AlternativeName::{Address, Dns, Email, Uri, UserPrincipalName};
    match (one, other) {
        (Dns(one), Dns(other))
        | (Email(one), Email(other))
        | (UserPrincipalName(one), UserPrincipalName(other)) => {
            one.to_lowercase() == other.to_lowercase()
        }
        (Uri(one), Uri(other)) => one == other,
        (Address(one), Address(other)) => one == other,
        _ => false,
    }
}

fn is_host_of(host: &str, domain: &str) -> bool {
    host.split_once('.')
        .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(domain))
}

/// Lists of client certificates with which clients may and may not connect.
#[derive(Clone, Debug, Default)]
pub struct AccessLists {
    /// Rules for certificates of clients that may connect. If the list is empty, all clients may
    /// connect except those that `deny` selects.
    pub allow: Vec<Identifier>,
    /// Rules for certificates of clients that may not connect, even if `allow` selects them.
    pub deny: Vec<Identifier>,
}

/// Reason why a client may not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Denial {
    /// This entry denies the certificate with this subject.
    Denied { entry: String, subject: String },
    /// No entry allows a certificate of the chain.
    NotAllowed,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { entry, subject } => {
                write!(
                    f,
                    "the list of what is denied has `{entry}`, which is {subject}"
                )
            }
            Self::NotAllowed => f.write_str("nothing on the list of what is allowed fits it"),
        }
    }
}

impl AccessLists {
    /// Returns whether both lists are empty: every client with a valid certificate may then
    /// connect.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Checks a verified chain: the client's certificate first, and the root last, if it is
    /// included.
    pub(super) fn check(&self, chain: &[Holder]) -> Result<(), Denial> {
        for holder in chain {
            if let Some(entry) = self.deny.iter().find(|entry| entry.names(holder)) {
                return Err(Denial::Denied {
                    entry: entry.to_string(),
                    subject: holder.subject.to_string(),
                });
            }
        }
        let is_allowed = |entry: &Identifier| chain.iter().any(|holder| entry.names(holder));
        if self.allow.is_empty() || self.allow.iter().any(is_allowed) {
            Ok(())
        } else {
            Err(Denial::NotAllowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(seed: &[u8], issuer: &str, names: &[AlternativeName]) -> Holder {
        Holder {
            fingerprint: Fingerprint::of(seed),
            subject: "CN=laptop".parse().expect("a name"),
            issuer: issuer.parse().expect("a name"),
            names: names.to_vec(),
        }
    }

    fn chain() -> Vec<Holder> {
        let names = [
            AlternativeName::Dns("laptop.lab.example".into()),
            AlternativeName::Email("Alice@lab.example".into()),
            AlternativeName::Uri("urn:lab:1".into()),
            AlternativeName::UserPrincipalName("alice@LAB".into()),
            AlternativeName::Address("192.0.2.7".parse().expect("an address")),
        ];
        vec![
            holder(b"leaf", "CN=Lab CA 2, O=Lab", &names),
            holder(b"middle", "CN=Lab Root, O=Lab", &[]),
        ]
    }

    fn list(entries: &[&str]) -> Vec<Identifier> {
        let entry = |text: &&str| text.parse().expect("an entry");
        entries.iter().map(entry).collect()
    }

    fn check(allow: &[&str], deny: &[&str]) -> Result<(), Denial> {
        let lists = AccessLists {
            allow: list(allow),
            deny: list(deny),
        };
        lists.check(&chain())
    }

    fn sha256(seed: &[u8]) -> String {
        format!("sha256:{}", Fingerprint::of(seed))
    }

    #[test]
    fn each_kind_of_entry_allows_what_it_names() {
        let (leaf, middle) = (sha256(b"leaf"), sha256(b"middle"));
        for entry in [
            &leaf,
            &middle,
            "issuer:CN=Lab CA 2, O=Lab",
            "issuer:O=Lab, CN=Lab Root",
            "dns:LAPTOP.lab.example",
            "dns:*.lab.example",
            "email:alice@lab.example",
            "uri:urn:lab:1",
            "upn:Alice@lab",
            "ip:192.0.2.7",
        ] {
            assert_eq!(check(&[entry], &[]), Ok(()), "{entry}");
            assert!(check(&[], &[entry]).is_err(), "{entry}");
        }
    }

    #[test]
    fn others_are_not_allowed() {
        for entry in [
            &sha256(b"other"),
            "issuer:CN=Lab CA 2",
            "dns:laptop.example",
            "dns:*.example",
            "dns:*.laptop.lab.example",
            "email:alice@LAB",
            "uri:urn:LAB:1",
            "upn:alice@lab.example",
            "ip:192.0.2.8",
        ] {
            assert_eq!(check(&[entry], &[]), Err(Denial::NotAllowed), "{entry}");
            assert_eq!(check(&[], &[entry]), Ok(()), "{entry}");
        }
    }

    #[test]
    fn one_entry_that_denies_is_enough() {
        let leaf = sha256(b"leaf");
        let error = check(&[&leaf], &["issuer:CN=Lab Root, O=Lab"]).expect_err("denied");
        let expected = Denial::Denied {
            entry: "issuer:CN=Lab Root, O=Lab".into(),
            subject: "CN=laptop".into(),
        };
        assert_eq!(error, expected);
        assert!(check(&["issuer:CN=Lab Root, O=Lab"], &[&leaf]).is_err());
    }

    #[test]
    fn mistakes_are_errors() {
        let error = |text: &str| text.parse::<Identifier>().expect_err("a mistake");
        assert_eq!(error("laptop"), IdentifierError::Kind("laptop".into()));
        assert_eq!(error("sha1:00"), IdentifierError::Kind("sha1:00".into()));
        assert_eq!(error("dns: "), IdentifierError::Empty("dns:".into()));
        assert_eq!(error("ip:x"), IdentifierError::Address("x".into()));
        let short = IdentifierError::Fingerprint(FingerprintError::Length(2));
        assert_eq!(error("sha256:ab"), short);
        assert_eq!(error("issuer:"), IdentifierError::Issuer(NameError::Empty));
    }
}

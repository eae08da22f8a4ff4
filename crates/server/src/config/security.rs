//! The section `[security]`: signing, encryption, dialects, failed logins, addresses of clients.

use proto::server::GmacChannels;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Check, ConfigError, unplaced};

/// The section `[security]` of the configuration: signing, encryption, dialects, failed logins, and
/// addresses of clients.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySection {
    /// Whether every session must sign its messages. Default: yes. Guests cannot sign, so they need
    /// `false`.
    pub signing_required: bool,
    /// Protection of sessions that may use several connections if client and server would sign with
    /// AES-GMAC, which must not repeat a nonce. Default: the server encrypts them.
    pub gmac_channels: GmacChoice,
    /// Whether all sessions must be encrypted. If so, clients with dialects before 3.0 cannot
    /// connect. Default: no.
    pub encryption_required: bool,
    /// Oldest dialect that the server accepts: `2.0.2` (the default), `2.1`, `3.0`, `3.0.2` or
    /// `3.1.1`.
    #[schemars(with = "String")]
    pub min_dialect: Spanned<String>,
    /// Newest dialect that the server accepts: `2.0.2`, `2.1`, `3.0`, `3.0.2` or `3.1.1` (the
    /// default).
    #[schemars(with = "String")]
    pub max_dialect: Spanned<String>,
    /// Time in milliseconds that the server waits before its response to a refused login. It slows
    /// down clients that guess passwords. Default: 2000.
    pub failed_login_delay_ms: u64,
    /// Number of failed logins of a client to an account after which the server refuses all logins
    /// of that client to the account (a lockout). Default: 0, which disables lockouts.
    pub lockout_threshold: u32,
    /// Duration of a lockout (see `lockout_threshold`) in milliseconds, at most a year. Failed
    /// logins that are older than this do not count. Default: 900,000 (15 minutes).
    pub lockout_duration_ms: u64,
    /// Addresses and networks from which clients may connect to the server, such as `192.0.2.0/24`.
    /// They decide before `hosts_deny`. Without `hosts_deny`, the server refuses all other clients,
    /// except those of this machine (loopback). A share can have further rules. Default: empty.
    #[schemars(with = "Vec<String>")]
    pub hosts_allow: Vec<Spanned<String>>,
    /// Addresses and networks from which clients may not connect to the server. Default: empty.
    #[schemars(with = "Vec<String>")]
    pub hosts_deny: Vec<Spanned<String>>,
}

impl Default for SecuritySection {
    fn default() -> Self {
        Self {
            signing_required: true,
            gmac_channels: GmacChoice::default(),
            encryption_required: false,
            min_dialect: unplaced("2.0.2".to_owned()),
            max_dialect: unplaced("3.1.1".to_owned()),
            failed_login_delay_ms: 2000,
            lockout_threshold: 0,
            lockout_duration_ms: 15 * 60 * 1000,
            hosts_allow: Vec::new(),
            hosts_deny: Vec::new(),
        }
    }
}

/// The value of `security.gmac_channels`: how the server protects a session that may use several
/// connections if AES-GMAC would sign it. The connections share a key and count nonces separately,
/// but AES-GMAC must not repeat a nonce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GmacChoice {
    /// `encrypt`: the server encrypts the session.
    #[default]
    Encrypt,
    /// `cmac`: the peers sign with AES-CMAC.
    Cmac,
    /// `single`: the session uses one connection.
    Single,
    /// `allow`: AES-GMAC signs all connections of the session, as with other servers.
    Allow,
}

impl From<GmacChoice> for GmacChannels {
    fn from(choice: GmacChoice) -> Self {
        match choice {
            GmacChoice::Encrypt => Self::Encrypt,
            GmacChoice::Cmac => Self::Cmac,
            GmacChoice::Single => Self::Single,
            GmacChoice::Allow => Self::Allow,
        }
    }
}

/// The dialect with this name; `None` if there is none.
pub(crate) fn dialect(name: &str) -> Option<wire::dialect::Dialect> {
    use wire::dialect::Dialect;
    match name {
        "2.0.2" => Some(Dialect::SMB_2_0_2),
        "2.1" => Some(Dialect::SMB_2_1),
        "3.0" => Some(Dialect::SMB_3_0),
        "3.0.2" => Some(Dialect::SMB_3_0_2),
        "3.1.1" => Some(Dialect::SMB_3_1_1),
        _ => None,
    }
}

impl Check<'_> {
    pub(super) fn security(&self, security: &SecuritySection) -> Result<(), ConfigError> {
        for (key, value) in [
            ("min_dialect", &security.min_dialect),
            ("max_dialect", &security.max_dialect),
        ] {
            if dialect(value.get_ref()).is_none() {
                let what = format!(
                    "security.{key}: unknown dialect `{}`: use 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1",
                    value.get_ref()
                );
                return Err(self.error(value, what));
            }
        }
        if dialect(security.min_dialect.get_ref()) > dialect(security.max_dialect.get_ref()) {
            let what = "security.min_dialect is newer than security.max_dialect".to_owned();
            return Err(self.error(&security.min_dialect, what));
        }
        self.hosts("security.hosts_allow", &security.hosts_allow)?;
        self.hosts("security.hosts_deny", &security.hosts_deny)
    }
}

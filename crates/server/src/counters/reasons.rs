//! The reasons of refusals that have counters. The label of a counter is the code of its reason.

use auth::Refusal;
use proto::report::{LoginRefusal, ShareRefusal};

use crate::reasons;

reasons! {
    /// The reason of a refused login.
    pub enum RefusedLogin {
        /// No account has the name.
        UnknownUser = "login-unknown-user",
        /// The password is wrong.
        WrongPassword = "login-wrong-password",
        /// The account is disabled.
        Disabled = "login-account-disabled",
        /// The app password has expired.
        AppPasswordExpired = "login-app-password-expired",
        /// The client sent an LM or NTLMv1 response.
        NtlmV1 = "login-ntlmv1",
        /// The client lacks a required capability of NTLM.
        Downgrade = "login-ntlm-downgrade",
        /// The login changed in transit.
        Mic = "login-integrity",
        /// The server allows no anonymous users.
        Anonymous = "login-anonymous",
        /// Client and server have no common mechanism.
        NoMechanism = "login-no-common-mechanism",
        /// The security token is malformed.
        Malformed = "login-malformed",
        /// Too many logins wait.
        Overloaded = "login-overloaded",
        /// Too many earlier logins have failed.
        TooManyFailures = "login-too-many-failures",
        /// The client is locked out of the account.
        LockedOut = "login-locked-out",
        /// The connection ended before the check of the password.
        Disconnected = "login-disconnected",
        /// The user has no Unix account.
        NoUnixAccount = "login-no-unix-account",
        /// A guest cannot sign.
        GuestCannotSign = "login-guest-cannot-sign",
        /// A guest cannot encrypt.
        GuestCannotEncrypt = "login-guest-cannot-encrypt",
        /// The client negotiated no encryption.
        ClientCannotEncrypt = "login-client-cannot-encrypt",
        /// The account changed during the login.
        AccountChanged = "login-account-changed",
        /// The session cannot be used.
        Unusable = "login-session-unusable",
    }
}

reasons! {
    /// The reason of a refused connection to a share.
    pub(crate) enum RefusedShare {
        /// The user is not in the list of the share.
        NotListed = "share-user-not-listed",
        /// The user is in the list of users that the share refuses.
        InvalidUser = "share-user-refused",
        /// The share admits no guests.
        NoGuests = "share-no-guests",
        /// The share admits no clients with this address.
        Host = "share-address-refused",
        /// The app password of the login is for other shares.
        AppPassword = "share-app-password",
        /// The session cannot encrypt.
        CannotEncrypt = "share-cannot-encrypt",
    }
}

reasons! {
    /// The limit that refused a connection.
    pub(crate) enum RefusedConnection {
        /// The number of connections.
        Connections = "limit-connections",
        /// The number of connections of one address.
        ConnectionsPerAddress = "limit-connections-per-address",
        /// The number of connections without a login.
        HalfOpen = "limit-half-open",
        /// The number of connections of one address without a login.
        HalfOpenPerAddress = "limit-half-open-per-address",
        /// The memory of connections without a login.
        HalfOpenMemory = "limit-half-open-memory",
        /// The memory of the process.
        Memory = "limit-memory",
        /// The address of the client.
        Hosts = "connection-address-refused",
        /// Another limit.
        Other = "limit-other",
    }
}

impl From<Refusal> for RefusedLogin {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::BadUser => Self::UnknownUser,
            Refusal::BadPassword => Self::WrongPassword,
            Refusal::Disabled => Self::Disabled,
            Refusal::Expired => Self::AppPasswordExpired,
            Refusal::NtlmV1 => Self::NtlmV1,
            Refusal::Downgrade => Self::Downgrade,
            Refusal::MicMismatch | Refusal::MechListMicMismatch => Self::Mic,
            Refusal::Anonymous => Self::Anonymous,
            Refusal::NoCommonMechanism => Self::NoMechanism,
            Refusal::Malformed => Self::Malformed,
        }
    }
}

impl From<LoginRefusal> for RefusedLogin {
    fn from(refusal: LoginRefusal) -> Self {
        match refusal {
            LoginRefusal::GuestCannotSign => Self::GuestCannotSign,
            LoginRefusal::GuestCannotEncrypt => Self::GuestCannotEncrypt,
            LoginRefusal::ClientCannotEncrypt => Self::ClientCannotEncrypt,
            LoginRefusal::AccountChanged => Self::AccountChanged,
            LoginRefusal::Unusable(_) => Self::Unusable,
        }
    }
}

impl From<ShareRefusal> for RefusedShare {
    fn from(refusal: ShareRefusal) -> Self {
        match refusal {
            ShareRefusal::NotListed => Self::NotListed,
            ShareRefusal::InvalidUser => Self::InvalidUser,
            ShareRefusal::NoGuests => Self::NoGuests,
            ShareRefusal::Host => Self::Host,
            ShareRefusal::AppPassword => Self::AppPassword,
            ShareRefusal::CannotEncrypt => Self::CannotEncrypt,
        }
    }
}

impl RefusedConnection {
    /// The limit with this key.
    pub(crate) fn of_key(key: &str) -> Self {
        match key {
            "limits.connections" => Self::Connections,
            "limits.connections_per_address" => Self::ConnectionsPerAddress,
            "limits.half_open" => Self::HalfOpen,
            "limits.half_open_per_address" => Self::HalfOpenPerAddress,
            "limits.half_open_memory_mb" => Self::HalfOpenMemory,
            "limits.memory_max_mb" => Self::Memory,
            "security.hosts_deny" => Self::Hosts,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::Reason as _;

    #[test]
    fn each_key_of_a_limit_has_its_code() {
        for (key, code) in [
            ("limits.connections", "limit-connections"),
            (
                "limits.connections_per_address",
                "limit-connections-per-address",
            ),
            ("limits.half_open", "limit-half-open"),
            (
                "limits.half_open_per_address",
                "limit-half-open-per-address",
            ),
            ("limits.half_open_memory_mb", "limit-half-open-memory"),
            ("limits.memory_max_mb", "limit-memory"),
            ("x", "limit-other"),
        ] {
            assert_eq!(RefusedConnection::of_key(key).code(), code, "{key}");
        }
    }
}

//! The reasons of refusals that have counters, with their labels.

use auth::Refusal;
use proto::report::{LoginRefusal, ShareRefusal};

/// A closed set of reasons.
pub(crate) trait Reason: Copy + 'static {
    /// All reasons with their labels, in the order of [`index`](Self::index).
    const LABELS: &'static [&'static str];

    /// Number of the reason, from 0.
    fn index(self) -> usize;
}

/// Declares a set of reasons.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$item:meta])* $reason:ident = $label:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($(#[$item])* $reason,)*
        }

        impl Reason for $name {
            const LABELS: &'static [&'static str] = &[$($label),*];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

reasons! {
    /// The reason of a refused login.
    RefusedLogin {
        /// No account has the name.
        UnknownUser = "unknown_user",
        /// The password is wrong.
        WrongPassword = "wrong_password",
        /// The account is disabled.
        Disabled = "account_disabled",
        /// The client sent an LM or NTLMv1 response.
        NtlmV1 = "ntlmv1",
        /// The client lacks a required capability of NTLM.
        Downgrade = "ntlm_downgrade",
        /// The login changed in transit.
        Mic = "integrity",
        /// The server allows no anonymous users.
        Anonymous = "anonymous",
        /// Client and server have no common mechanism.
        NoMechanism = "no_common_mechanism",
        /// The security token is malformed.
        Malformed = "malformed",
        /// Too many logins wait.
        Overloaded = "overloaded",
        /// Too many earlier logins have failed.
        TooManyFailures = "too_many_failures",
        /// The client is locked out of the account.
        LockedOut = "locked_out",
        /// The connection ended before the check of the password.
        Disconnected = "disconnected",
        /// The user has no Unix account.
        NoUnixAccount = "no_unix_account",
        /// A guest cannot sign.
        GuestCannotSign = "guest_cannot_sign",
        /// A guest cannot encrypt.
        GuestCannotEncrypt = "guest_cannot_encrypt",
        /// The client negotiated no encryption.
        ClientCannotEncrypt = "client_cannot_encrypt",
        /// The account changed during the login.
        AccountChanged = "account_changed",
        /// The session cannot be used.
        Unusable = "session_unusable",
    }
}

reasons! {
    /// The reason of a refused connection to a share.
    RefusedShare {
        /// The user is not in the list of the share.
        NotListed = "user_not_listed",
        /// The share admits no guests.
        NoGuests = "no_guests",
        /// The session cannot encrypt.
        CannotEncrypt = "cannot_encrypt",
    }
}

reasons! {
    /// The limit that refused a connection, by its key in the configuration.
    RefusedConnection {
        /// The number of connections.
        Connections = "limits.connections",
        /// The number of connections of one address.
        ConnectionsPerAddress = "limits.connections_per_address",
        /// The number of connections without a login.
        HalfOpen = "limits.half_open",
        /// The number of connections of one address without a login.
        HalfOpenPerAddress = "limits.half_open_per_address",
        /// The memory of connections without a login.
        HalfOpenMemory = "limits.half_open_memory_mb",
        /// The memory of the process.
        Memory = "limits.memory_max_mb",
        /// Another limit.
        Other = "other",
    }
}

impl From<Refusal> for RefusedLogin {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::BadUser => Self::UnknownUser,
            Refusal::BadPassword => Self::WrongPassword,
            Refusal::Disabled => Self::Disabled,
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
            ShareRefusal::NoGuests => Self::NoGuests,
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
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_of_a_limit_has_its_counter() {
        let (other, keys) = RefusedConnection::LABELS.split_last().expect("a list");
        assert_eq!(*other, "other");
        for (index, key) in keys.iter().enumerate() {
            assert_eq!(RefusedConnection::of_key(key).index(), index, "{key}");
        }
        assert_eq!(RefusedConnection::of_key("x"), RefusedConnection::Other);
    }
}

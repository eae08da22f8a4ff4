//! Whether a request whose channel was lost is sent again. \[MS-SMB2\] 3.2.7.1

use super::effect::Fate;
use super::request::Request;

/// What to do with a request that got no answer, while another channel of its session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Send it as it is.
    Again,
    /// Send it with a higher ChannelSequence and as a replay: the server knows what it has done.
    Replay,
    /// Give up: whether it was done cannot be found out.
    GiveUp,
}

/// What to do with `request`.
pub fn plan(_request: &Request, fate: Fate) -> Plan {
    match fate {
        Fate::Unsent => Plan::Again,
        Fate::Sent => Plan::GiveUp,
    }
}

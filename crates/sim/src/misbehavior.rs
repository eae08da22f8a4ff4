//! Faults of the server itself. Tests prove with them that the checks of caching find a wrong
//! server.

use std::time::Duration;

use proto::notice::CachingBreak;
use wire::create_context::LeaseState;
use wire::header::HEADER_LEN;
use wire::oplock_break::Notification;
use wire::{Command, Header, MessageId};

/// A fault of the server in the breaks of caching rights. The simulation adds it between the core
/// of the server and the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehavior {
    /// The server forgets each break that needs no acknowledgment: clients read old data from their
    /// caches.
    ForgetsReadBreaks,
    /// The server loses the notifications of breaks that need an acknowledgment: requests of other
    /// clients wait until the time limit of the break.
    LosesNotifications,
    /// The notifications of these breaks are late: so are the responses to other clients.
    DelaysNotifications,
    /// The server takes rights away long before the time limit of the break: two clients cache what
    /// one of them writes, and names change in spite of cached handles.
    EndsBreaksEarly,
    /// The epochs in notifications of breaks are lower than earlier ones.
    LowersEpochs,
    /// The notifications of breaks name other rights than those of the client.
    NamesOtherRights,
}

impl Misbehavior {
    /// Returns whether the server forgets a break.
    pub(crate) fn forgets(self, caching_break: &CachingBreak) -> bool {
        self == Self::ForgetsReadBreaks && caching_break.from == LeaseState::READ_CACHING
    }

    /// Returns whether the notification of a break never reaches the client.
    pub(crate) fn loses(self, caching_break: &CachingBreak) -> bool {
        self == Self::LosesNotifications && caching_break.from != LeaseState::READ_CACHING
    }

    /// Returns the time by which the notification of a break is late.
    pub(crate) fn delay(self, caching_break: &CachingBreak) -> Duration {
        let is_awaited = caching_break.from != LeaseState::READ_CACHING;
        match self == Self::DelaysNotifications && is_awaited {
            true => Duration::from_secs(10),
            false => Duration::ZERO,
        }
    }

    /// Returns the time limit of breaks, if it differs from the default.
    pub(crate) fn break_timeout(self) -> Option<Duration> {
        (self == Self::EndsBreaksEarly).then_some(Duration::from_millis(5))
    }

    /// Changes a message of the server, before it is signed and encrypted.
    pub(crate) fn spoil(self, message: &mut Vec<u8>) {
        let is_notification = Header::decode(message).is_ok_and(|header| {
            let unsolicited = header.message_id == MessageId::UNSOLICITED;
            unsolicited && header.command == Command::OPLOCK_BREAK
        });
        if !is_notification {
            return;
        }
        let Ok(Notification::Lease(mut lease)) = Notification::decode(message) else {
            return;
        };
        match self {
            // A lease of version 1 has the epoch 0.
            Self::LowersEpochs if lease.new_epoch > 0 => lease.new_epoch -= 2,
            Self::NamesOtherRights => {
                lease.current_lease_state.0 ^= LeaseState::HANDLE_CACHING.0;
            }
            _ => {}
        }
        message.truncate(HEADER_LEN);
        Notification::Lease(lease).encode(message);
    }
}

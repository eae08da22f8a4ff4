//! Credits and the sequence window: the MessageIds that a client may use. \[MS-SMB2\] 3.3.1.1,
//! 3.3.1.2
//!
//! The window reaches from the lowest unused MessageId to the highest granted one. A client may use
//! the ids in any order, each once. The length of the window has a limit: a client that leaves an
//! id out gets fewer and fewer credits until it uses that id. Windows (since 2016) and Samba do the
//! same. The client can always use the id that it left out, so that it never starves.

use alloc::collections::BTreeSet;

use wire::MessageId;

/// The server's record of the MessageIds that a client may use on a connection; each costs one
/// credit. \[MS-SMB2\] 3.3.1.7, CommandSequenceWindow
#[derive(Debug)]
pub struct SequenceWindow {
    /// The lowest unused id.
    low: u64,
    /// One above the highest granted id.
    high: u64,
    /// Used ids above `low`. Empty while the client uses ids in order.
    seen: BTreeSet<u64>,
    /// Maximum length of the window in ids.
    limit: u64,
}

impl SequenceWindow {
    /// Makes the window of a new connection, which contains only MessageId 0. `limit` is the
    /// maximum number of consecutive ids in the window, at least 1. \[MS-SMB2\] 3.3.1.7
    pub fn new(limit: u16) -> Self {
        Self {
            low: 0,
            high: 1,
            seen: BTreeSet::new(),
            limit: u64::from(limit.max(1)),
        }
    }

    /// Marks the `charge` MessageIds from `first` on as used by a request; a charge of 0 counts as
    /// one. Returns false, without an effect, if one of them is outside the window or already used.
    /// \[MS-SMB2\] 3.3.5.2.3
    #[must_use]
    pub fn take(&mut self, first: MessageId, charge: u16) -> bool {
        let first = first.0;
        let Some(end) = first.checked_add(u64::from(charge.max(1))) else {
            return false;
        };
        if first < self.low || end > self.high || self.seen.range(first..end).next().is_some() {
            return false;
        }
        if first == self.low {
            self.low = end;
        } else {
            self.seen.extend(first..end);
        }
        while self.seen.first() == Some(&self.low) {
            self.seen.pop_first();
            self.low += 1;
        }
        assert!(self.low <= self.high);
        true
    }

    /// Grants up to `wanted` further MessageIds (credits) to the client. Returns the number of
    /// granted ids: fewer than `wanted` if the window would exceed its limit, 0 if the window is
    /// full. The server puts the number into its response.
    #[must_use]
    pub fn grant(&mut self, wanted: u16) -> u16 {
        let room = self.limit.saturating_sub(self.high - self.low);
        // The highest id marks messages that answer no request.
        let room = room.min(MessageId::UNSOLICITED.0 - self.high);
        let granted = u16::try_from(room).unwrap_or(u16::MAX).min(wanted);
        self.high += u64::from(granted);
        assert!(
            granted > 0 || wanted == 0 || room == 0,
            "a client never starves"
        );
        granted
    }

    /// Returns the number of credits that the client holds: ids that the server granted and no
    /// request has used.
    pub fn held(&self) -> u64 {
        self.high - self.low - self.seen.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(window: &mut SequenceWindow, first: u64, charge: u16) -> bool {
        window.take(MessageId(first), charge)
    }

    #[test]
    fn ids_can_be_used_in_any_order_and_once() {
        let mut window = SequenceWindow::new(512);
        assert!(take(&mut window, 0, 1));
        assert_eq!(window.grant(8), 8);
        assert!(take(&mut window, 4, 2));
        assert!(!take(&mut window, 5, 1));
        assert!(take(&mut window, 1, 3));
        assert!(!take(&mut window, 1, 1));
        assert!(!take(&mut window, 8, 2));
        assert!(take(&mut window, 6, 3));
        assert_eq!(window.held(), 0);
    }

    #[test]
    fn an_unused_id_blocks_the_window() {
        let mut window = SequenceWindow::new(16);
        assert!(take(&mut window, 0, 1));
        assert_eq!(window.grant(100), 16);
        for id in 2..=16 {
            assert!(take(&mut window, id, 1));
            assert_eq!(window.grant(1), 0);
        }
        assert!(take(&mut window, 1, 1));
        assert_eq!(window.grant(100), 16);
    }

    #[test]
    fn the_highest_id_is_never_granted() {
        let mut window = SequenceWindow::new(16);
        window.low = u64::MAX - 2;
        window.high = u64::MAX - 2;
        assert_eq!(window.grant(16), 2);
        assert!(!take(&mut window, u64::MAX, 1));
        assert!(!take(&mut window, u64::MAX, u16::MAX));
    }

    proptest! {
        #[test]
        fn a_window_agrees_with_a_set(
            steps in proptest::collection::vec((0_u64..64, 1_u16..5, 0_u16..9), 1..200),
        ) {
            let mut window = SequenceWindow::new(32);
            let mut free = BTreeSet::from([0_u64]);
            for (first, charge, wanted) in steps {
                let ids: BTreeSet<u64> = (first..first + u64::from(charge)).collect();
                let is_free = ids.is_subset(&free);
                prop_assert_eq!(take(&mut window, first, charge), is_free);
                if is_free {
                    free.retain(|id| !ids.contains(id));
                }
                let high = window.high;
                let granted = window.grant(wanted);
                free.extend(high..high + u64::from(granted));
                prop_assert_eq!(window.held(), free.len() as u64);
                prop_assert!(window.high - window.low <= 32);
            }
        }
    }
}

use super::*;
use crate::check::contents::Stamp;
use wire::Guid;

const FILE: u64 = 7;
/// The client and the connection of every holder.
const CLIENT: usize = 1;
const LINK: u64 = 3;

fn name(key: u8) -> Name {
    Name::Lease(Guid([1; 16]), Guid([key; 16]))
}

fn arrival(tick: u64) -> Arrival {
    let now = Instant(Duration::from_millis(tick));
    let link = LINK;
    Arrival { link, tick, now }
}

fn seconds(count: u64) -> Instant {
    Instant(Duration::from_secs(count))
}

fn grant(key: u8, rights: LeaseState, epoch: u16) -> Grant {
    Grant {
        name: name(key),
        key: FILE,
        rights,
        epoch,
        is_breaking: false,
    }
}

/// Adds a lease of version 2 with one open, and grants rights to it.
fn lease(caching: &mut Caching, key: u8, rights: LeaseState, tick: u64) -> (u64, Check) {
    let mut holder = Holder::new(Some(name(key)), CLIENT, None);
    holder.is_v2 = true;
    holder.members.insert((CLIENT, u64::from(key)), true);
    let number = caching.add(holder);
    let result = caching.granted(number, &grant(key, rights, 1), arrival(tick));
    (number, result.map(drop))
}

fn notice(key: u8, from: LeaseState, to: LeaseState) -> CachingBreak {
    CachingBreak {
        session: wire::SessionId(1),
        file_id: wire::FileId::default(),
        lease: Some(proto::notice::LeaseBreak {
            client: Guid([1; 16]),
            key: Guid([key; 16]),
            epoch: 2,
            needs_ack: from != READ,
        }),
        from,
        to,
    }
}

fn notified(key: u8, from: LeaseState, to: LeaseState, epoch: u16) -> Notified {
    Notified {
        name: name(key),
        from: Some(from),
        to,
        epoch,
        needs_ack: from != READ,
    }
}

#[test]
fn a_second_holder_beside_a_writer_is_found() {
    let mut caching = Caching::default();
    let all = READ | WRITE | HANDLE;
    assert_eq!(lease(&mut caching, 1, all, 1).1, Ok(()));
    assert_eq!(lease(&mut caching, 2, NONE, 2).1, Ok(()));
    assert!(lease(&mut caching, 3, READ, 3).1.is_err());
}

#[test]
fn a_writer_beside_a_reader_is_found() {
    let mut caching = Caching::default();
    assert_eq!(lease(&mut caching, 1, READ, 1).1, Ok(()));
    assert_eq!(lease(&mut caching, 2, READ | HANDLE, 2).1, Ok(()));
    assert!(lease(&mut caching, 3, READ | WRITE, 3).1.is_err());
}

#[test]
fn rights_are_certain_until_the_acknowledgment_or_the_time_limit() {
    let all = READ | WRITE | HANDLE;
    for is_acknowledged in [true, false] {
        let mut caching = Caching::default();
        let (first, _) = lease(&mut caching, 1, all, 1);
        let to = READ | HANDLE;
        caching.post(&notice(1, all, to), 2, seconds(0));
        assert!(lease(&mut caching, 2, READ, 3).1.is_err());
        let broken = caching.notified(&notified(1, all, to, 2), arrival(4));
        assert_eq!(broken, Ok(Some(first)));
        assert!(lease(&mut caching, 3, READ, 5).1.is_err());
        if is_acknowledged {
            caching.acknowledges(first, to, 6);
            assert_eq!(lease(&mut caching, 4, READ, 7).1, Ok(()));
        } else {
            let holder = caching.get_mut(first).expect("it has an open");
            holder.breaking = Some(Breaking {
                to,
                since: seconds(0),
                due: None,
                by: CLIENT,
                is_greedy: false,
                is_doubled: false,
            });
            assert!(lease(&mut caching, 4, READ, 29_999).1.is_err());
            caching.leave((CLIENT, 2));
            caching.leave((CLIENT, 3));
            caching.leave((CLIENT, 4));
            assert_eq!(lease(&mut caching, 5, READ, 30_001).1, Ok(()));
        }
    }
}

#[test]
fn the_right_to_delay_writes_ends_with_the_time_limit_of_a_break() {
    let mut caching = Caching::default();
    let all = READ | WRITE | HANDLE;
    let (number, _) = lease(&mut caching, 1, all, 1);
    assert!(caching.may_write(number, seconds(100)));
    caching.post(&notice(1, all, READ), 2, seconds(100));
    assert!(caching.may_write(number, seconds(129)));
    assert!(!caching.may_write(number, seconds(130)));
    caching.leave((CLIENT, 1));
    assert!(!caching.may_write(number, seconds(100)));
}

#[test]
fn a_read_may_be_stale_from_the_notice_to_the_notification() {
    let mut caching = Caching::default();
    let (number, _) = lease(&mut caching, 1, READ, 1);
    let span = Span {
        start: 2,
        end: Some(3),
    };
    let holder = caching.get_mut(number).expect("it has an open");
    holder.fill(5, Stamp(9), span);
    assert_eq!(holder.readable(seconds(0)).get(&5), Some(&Stamp(9)));
    assert_eq!(caching.stale_since(number), None);
    caching.post(&notice(1, READ, NONE), 4, seconds(0));
    assert_eq!(caching.stale_since(number), Some(4));
    let broken = caching.notified(&notified(1, READ, NONE, 2), arrival(6));
    assert_eq!(broken, Ok(None));
    assert_eq!(caching.stale_since(number), None);
    let holder = caching.get(number).expect("it has an open");
    assert!(holder.readable(seconds(0)).is_empty());
}

#[test]
fn a_read_that_overlaps_a_write_of_the_client_fills_no_cache() {
    let mut caching = Caching::default();
    let (number, _) = lease(&mut caching, 1, READ | WRITE, 1);
    let holder = caching.get_mut(number).expect("it has an open");
    holder.changes(3);
    holder.has_changed(5);
    let span = |start| Span {
        start,
        end: Some(6),
    };
    holder.fill(1, Stamp(1), span(2));
    holder.fill(2, Stamp(1), span(4));
    assert!(holder.readable(seconds(0)).is_empty());
    holder.fill(3, Stamp(1), span(6));
    assert_eq!(holder.readable(seconds(0)).len(), 1);
}

#[test]
fn a_break_that_never_arrives_is_found() {
    let mut caching = Caching::default();
    let (_, result) = lease(&mut caching, 1, READ, 1);
    assert_eq!(result, Ok(()));
    caching.post(&notice(1, READ, NONE), 2, seconds(0));
    assert_eq!(caching.check_delivery(seconds(20)), Ok(()));
    assert!(caching.check_delivery(seconds(21)).is_err());
    caching.leave((CLIENT, 1));
    assert_eq!(caching.check_delivery(seconds(21)), Ok(()));
}

#[test]
fn an_epoch_that_goes_back_is_found() {
    let mut caching = Caching::default();
    let (number, _) = lease(&mut caching, 1, READ, 1);
    let upgraded = caching.granted(number, &grant(1, READ | HANDLE, 2), arrival(2));
    assert_eq!(upgraded, Ok(None));
    assert!(
        caching
            .granted(number, &grant(1, READ, 1), arrival(3))
            .is_err()
    );
}

/// Adds a lease of two opens of which the responses are in flight. The notification of a break
/// arrives before them.
fn broken_early(caching: &mut Caching) -> u64 {
    let mut holder = Holder::new(Some(name(1)), CLIENT, None);
    holder.is_v2 = true;
    holder.members.insert((CLIENT, 1), false);
    holder.members.insert((CLIENT, 2), false);
    let number = caching.add(holder);
    let early = notified(1, READ | HANDLE, NONE, 2);
    assert_eq!(caching.notified(&early, arrival(1)), Ok(None));
    number
}

#[test]
fn a_lease_begins_anew_after_an_open_without_a_response() {
    let mut caching = Caching::default();
    let number = broken_early(&mut caching);
    let first = grant(1, READ | HANDLE, 1);
    assert!(caching.granted(number, &first, arrival(2)).is_err());
    // The connection of the first open is lost, and its lease ends with it: the second open has a
    // new lease, without the break.
    let mut caching = Caching::default();
    let number = broken_early(&mut caching);
    caching.leave((CLIENT, 1));
    assert_eq!(caching.granted(number, &first, arrival(2)), Ok(None));
    // The CREATE of the first open fails after the break of its lease.
    let mut caching = Caching::default();
    let number = broken_early(&mut caching);
    caching.refused((CLIENT, 1));
    assert_eq!(caching.granted(number, &first, arrival(2)), Ok(None));
}

#[test]
fn a_lease_of_a_failed_create_is_that_of_the_others() {
    let mut caching = Caching::default();
    let mut holder = Holder::new(Some(name(1)), CLIENT, None);
    holder.members.insert((CLIENT, 1), false);
    holder.members.insert((CLIENT, 2), false);
    let number = caching.add(holder);
    caching.refused((CLIENT, 1));
    assert!(caching.get(number).is_some());
    caching.leave((CLIENT, 2));
    assert!(caching.get(number).is_none());
}

#[test]
fn new_rights_may_arrive_before_a_break_without_acknowledgment() {
    let mut caching = Caching::default();
    let (number, _) = lease(&mut caching, 1, READ, 1);
    let span = Span {
        start: 2,
        end: Some(3),
    };
    let holder = caching.get_mut(number).expect("it has an open");
    holder.fill(5, Stamp(9), span);
    let granted = caching.granted(number, &grant(1, READ | HANDLE, 3), arrival(4));
    assert_eq!(granted, Ok(None));
    let holder = caching.get(number).expect("it has an open");
    assert!(holder.readable(seconds(0)).is_empty(), "a break is missing");
    let late = notified(1, READ, NONE, 2);
    assert_eq!(caching.notified(&late, arrival(5)), Ok(None));
    assert_eq!(caching.rights_of(name(1)), Some(READ | HANDLE));
    // A break with an acknowledgment is never late.
    let late = notified(1, READ | HANDLE, READ, 2);
    assert!(caching.notified(&late, arrival(6)).is_err());
}

#[test]
fn a_break_of_other_rights_is_found() {
    let mut caching = Caching::default();
    let (_, result) = lease(&mut caching, 1, READ | HANDLE, 1);
    assert_eq!(result, Ok(()));
    let wrong = notified(1, READ | WRITE | HANDLE, READ, 2);
    assert!(caching.notified(&wrong, arrival(2)).is_err());
}

#[test]
fn the_next_step_of_a_break_has_its_epoch() {
    let mut caching = Caching::default();
    let all = READ | WRITE | HANDLE;
    let (number, _) = lease(&mut caching, 1, all, 1);
    let first = notified(1, all, READ | HANDLE, 2);
    assert_eq!(caching.notified(&first, arrival(2)), Ok(Some(number)));
    caching.acknowledges(number, READ | HANDLE, 3);
    assert_eq!(caching.notified(&first, arrival(4)), Ok(None));
    let second = notified(1, READ | HANDLE, READ, 2);
    assert_eq!(caching.notified(&second, arrival(5)), Ok(Some(number)));
}

#[test]
fn a_rename_in_spite_of_a_cached_handle_is_found() {
    let mut caching = Caching::default();
    let (number, _) = lease(&mut caching, 1, READ | HANDLE, 5);
    let moved = |start, own| {
        let end = Some(9);
        caching.moved(own, FILE, Span { start, end }, seconds(0))
    };
    assert!(moved(6, None).is_err());
    assert_eq!(moved(4, None), Ok(()));
    assert_eq!(moved(6, Some(number)), Ok(()));
}

use super::*;

const MIB: usize = 1 << 20;
const LIMIT: usize = 256 * MIB;

/// A pool of [`LIMIT`] bytes without memory.
#[derive(Default)]
struct Pool {
    shares: Shares,
    out: usize,
}

impl Pool {
    fn memory(&self) -> Memory {
        Memory {
            limit: LIMIT,
            free: LIMIT - self.out,
        }
    }

    fn holder(&mut self, group: u64) -> usize {
        let holder = self.shares.add();
        self.shares.set_group(holder, group);
        holder
    }

    fn take(&mut self, holder: usize, bytes: usize) -> bool {
        let may_take = self.shares.may_take(holder, bytes, self.memory());
        if may_take {
            self.shares.taken(holder, bytes);
            self.out += bytes;
        }
        may_take
    }

    /// Takes buffers until the shares forbid more. Returns their number.
    fn fill(&mut self, holder: usize, bytes: usize) -> usize {
        (0..).take_while(|_| self.take(holder, bytes)).count()
    }

    fn give_back(&mut self, holder: usize, bytes: usize) {
        self.shares.returned(holder, bytes);
        self.out -= bytes;
    }

    fn wait(&mut self, holder: usize, bytes: usize, since: Instant) -> u64 {
        self.shares.wait(holder, bytes, since, Waker::noop())
    }

    fn next(&self) -> Option<(usize, u64)> {
        self.shares.next(self.memory())
    }
}

#[test]
fn a_holder_alone_gets_a_fifth_and_many_holders_of_one_group_almost_all() {
    let mut pool = Pool::default();
    let alone = pool.holder(1);
    let count = pool.fill(alone, MIB);
    assert!((LIMIT / 5 / MIB - 1..=LIMIT / 5 / MIB).contains(&count));
    for _ in 0..1000 {
        let holder = pool.holder(1);
        pool.fill(holder, MIB / 4);
    }
    assert!(pool.out >= LIMIT / 8 * 7 && pool.out <= LIMIT / 32 * 31);
}

#[test]
fn greedy_holders_leave_memory_for_a_holder_of_the_same_group() {
    for bytes in [8 * MIB, MIB, MIB / 16] {
        let mut pool = Pool::default();
        for _ in 0..12 {
            let greedy = pool.holder(1);
            pool.fill(greedy, bytes);
        }
        for wanted in [MIB, 4 * MIB] {
            let victim = pool.holder(1);
            assert!(
                pool.take(victim, wanted),
                "greedy holders take {bytes} bytes"
            );
        }
    }
}

#[test]
fn a_greedy_group_leaves_memory_for_other_groups() {
    for bytes in [8 * MIB, MIB, MIB / 16] {
        let mut pool = Pool::default();
        for _ in 0..5000 {
            let greedy = pool.holder(1);
            pool.take(greedy, bytes);
        }
        for group in 2..5 {
            let victim = pool.holder(group);
            assert!(pool.take(victim, MIB), "a greedy group takes {bytes} bytes");
        }
    }
}

#[test]
fn a_small_pool_serves_one_large_request() {
    let mut shares = Shares::default();
    let holder = shares.add();
    let memory = |free| Memory {
        limit: 9 * MIB,
        free,
    };
    assert!(shares.may_take(holder, 8 * MIB, memory(9 * MIB)));
    assert!(!shares.may_take(holder, 8 * MIB, memory(7 * MIB)));
}

#[test]
fn a_new_request_does_not_pass_the_waiting_ones() {
    let mut pool = Pool::default();
    let (first, second) = (pool.holder(1), pool.holder(1));
    let number = pool.wait(first, MIB, Instant::now());
    assert!(!pool.take(second, MIB));
    assert_eq!(pool.next(), Some((first, number)));
    pool.shares.withdraw(first, number);
    assert_eq!(pool.next(), None);
    assert!(pool.take(second, MIB));
}

#[test]
fn requests_that_need_less_go_first_until_a_large_one_has_waited() {
    let mut pool = Pool::default();
    let (large, small) = (pool.holder(1), pool.holder(1));
    let now = Instant::now();
    let of_large = pool.wait(large, 8 * MIB, now);
    let of_small = pool.wait(small, MIB, now);
    assert_eq!(pool.next(), Some((small, of_small)));
    pool.shares.withdraw(large, of_large);
    let long_ago = now.checked_sub(std::time::Duration::from_secs(20));
    let long_ago = long_ago.expect("the machine runs for 20 s");
    let of_large = pool.wait(large, 8 * MIB, long_ago);
    assert_eq!(pool.next(), Some((large, of_large)));
}

#[test]
fn the_group_with_fewer_bytes_goes_first_and_one_over_its_share_blocks_no_other() {
    let mut pool = Pool::default();
    let greedy: Vec<usize> = (0..100).map(|_| pool.holder(1)).collect();
    for holder in &greedy {
        pool.fill(*holder, MIB);
    }
    let now = Instant::now();
    pool.wait(greedy[0], MIB, now);
    assert_eq!(pool.next(), None, "it is over its share");
    assert_eq!(pool.shares.starved(pool.memory()), None);
    let other = pool.holder(2);
    let number = pool.wait(other, MIB, now);
    assert_eq!(pool.next(), Some((other, number)));
}

#[test]
fn a_request_without_space_is_starved_and_goes_before_later_ones_of_its_group() {
    let mut pool = Pool::default();
    let greedy: Vec<usize> = (0..40).map(|_| pool.holder(1)).collect();
    let takers: Vec<usize> = (greedy.iter().copied())
        .filter(|holder| pool.take(*holder, 8 * MIB))
        .collect();
    let (large, larger) = (pool.holder(1), pool.holder(1));
    let now = Instant::now();
    let number = pool.wait(large, 8 * MIB, now);
    pool.wait(larger, 8 * MIB, now);
    assert_eq!(pool.next(), None);
    let starved = pool
        .shares
        .starved(pool.memory())
        .expect("it has no buffer");
    assert_eq!((starved.group, starved.is_group_over_share), (1, true));
    for holder in takers {
        pool.give_back(holder, 8 * MIB);
    }
    assert_eq!(pool.next(), Some((large, number)));
}

#[test]
fn a_dropped_holder_counts_until_its_buffers_are_back() {
    let mut pool = Pool::default();
    let holder = pool.holder(3);
    assert!(pool.take(holder, MIB));
    pool.wait(holder, MIB, Instant::now());
    pool.shares.remove(holder);
    assert_eq!(pool.next(), None);
    assert_eq!(pool.shares.group_bytes(3), MIB);
    pool.give_back(holder, MIB);
    assert!(pool.shares.groups.is_empty() && pool.shares.holders.is_empty());
}

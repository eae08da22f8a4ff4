//! The store of the server: small records that survive a crash.
//!
//! [`MemoryStore`] keeps its records in memory, so they last only as long as the process. A store
//! on disk implements the same trait.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use proto::store::{Outcome, Record, SCAN_MAX, StoreOp};
use wire::Status;

/// Maximum size of all keys and values of a [`MemoryStore`] in bytes.
const MEMORY_MAX: usize = 64 << 20;

/// A store of records. Several threads use it at once.
pub(crate) trait Store: fmt::Debug + Send + Sync {
    /// Runs the operation until it is durable. Called on a thread that may block.
    fn execute(&self, operation: StoreOp) -> Result<Outcome, Status>;
}

/// A store in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    by_key: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Size of all keys and values in bytes.
    size: usize,
}

impl Store for MemoryStore {
    fn execute(&self, operation: StoreOp) -> Result<Outcome, Status> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        match operation {
            StoreOp::Put(record) => records.put(record)?,
            StoreOp::Delete(key) => records.delete(&key),
            StoreOp::Scan { prefix, after } => {
                return Ok(Outcome::Records(records.scan(&prefix, after)));
            }
        }
        Ok(Outcome::Done)
    }
}

impl Records {
    fn put(&mut self, Record { key, value }: Record) -> Result<(), Status> {
        let previous = self.by_key.get(&key);
        let released = previous.map_or(0, |previous| key.len() + previous.len());
        let size = self.size - released + key.len() + value.len();
        if size > MEMORY_MAX {
            return Err(Status::DISK_FULL);
        }
        self.size = size;
        self.by_key.insert(key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) {
        if let Some(value) = self.by_key.remove(key) {
            self.size -= key.len() + value.len();
        }
    }

    fn scan(&self, prefix: &[u8], after: Option<Vec<u8>>) -> Vec<Record> {
        let start = match after {
            Some(after) if after.as_slice() >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix.to_vec()),
        };
        let found = self.by_key.range((start, Bound::Unbounded));
        let found = found.take_while(|(key, _)| key.starts_with(prefix));
        found
            .take(SCAN_MAX)
            .map(|(key, value)| Record::new(key.clone(), value.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, value: &str) -> Record {
        Record::new(key.into(), value.into())
    }

    fn scan(store: &MemoryStore, prefix: &str, after: Option<&str>) -> Vec<Record> {
        let operation = StoreOp::Scan {
            prefix: prefix.into(),
            after: after.map(Into::into),
        };
        let outcome = store.execute(operation).expect("a scan of memory succeeds");
        outcome.expect_records()
    }

    #[test]
    fn records_are_put_replaced_and_deleted() {
        let store = MemoryStore::default();
        for (key, value) in [("a/1", "x"), ("b/1", "y"), ("a/2", "z"), ("a/1", "new")] {
            let done = store.execute(StoreOp::Put(record(key, value)));
            assert_eq!(done, Ok(Outcome::Done));
        }
        assert_eq!(
            scan(&store, "a/", None),
            [record("a/1", "new"), record("a/2", "z")]
        );
        for key in ["a/1", "a/1", "c"] {
            let done = store.execute(StoreOp::Delete(key.into()));
            assert_eq!(done, Ok(Outcome::Done));
        }
        assert_eq!(
            scan(&store, "", None),
            [record("a/2", "z"), record("b/1", "y")]
        );
        assert_eq!(store.records.lock().expect("not poisoned").size, 8);
    }

    #[test]
    fn a_scan_continues_after_the_last_key() {
        let store = MemoryStore::default();
        let count = SCAN_MAX + 3;
        for number in 0..count {
            let record = record(&format!("k{number:06}"), "");
            store.execute(StoreOp::Put(record)).expect("it fits");
        }
        let first = scan(&store, "k", None);
        assert_eq!(first.len(), SCAN_MAX);
        let last = String::from_utf8(first[SCAN_MAX - 1].key.clone()).expect("ASCII");
        let rest = scan(&store, "k", Some(&last));
        assert_eq!(rest.len(), 3);
        assert_eq!(rest[2], record(&format!("k{:06}", count - 1), ""));
        assert_eq!(scan(&store, "k", Some("a")).len(), SCAN_MAX);
    }

    #[test]
    fn a_full_store_refuses_records() {
        let store = MemoryStore::default();
        let put = |number: usize, len: usize| {
            let record = Record::new(number.to_be_bytes().to_vec(), vec![0; len]);
            store.execute(StoreOp::Put(record))
        };
        let len = proto::store::VALUE_MAX;
        let count = MEMORY_MAX / (len + 8);
        for number in 0..count {
            assert_eq!(put(number, len), Ok(Outcome::Done));
        }
        assert_eq!(put(count, len), Err(Status::DISK_FULL));
        // A replacement takes the space of the record that it replaces.
        assert_eq!(put(0, len), Ok(Outcome::Done));
    }
}

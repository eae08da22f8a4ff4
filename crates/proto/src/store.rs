//! The store: small records that survive a crash of the server.
//!
//! The core requests a [`StoreOp`]; the driver completes it with an [`Outcome`]. A completed
//! operation is durable: its effect survives a crash of the process and of the machine. An
//! operation that is not completed at a crash may or may not have taken effect, but never in part.
//! The core does not start an operation on a key while another one on that key is in progress.

use alloc::vec::Vec;

/// Maximum length in bytes of the key of a [`Record`], a pair of key and value that outlives a
/// crash of the server. [`Record::new`] panics for a longer key; nothing truncates it.
pub const KEY_MAX: usize = 64;
/// Maximum length in bytes of the value of a [`Record`] (128 KiB). [`Record::new`] panics for a
/// longer value. The longest path with a file handle fits.
pub const VALUE_MAX: usize = 128 << 10;
/// Maximum number of records in the answer to one [`StoreOp::Scan`], which lists records. The
/// caller gets the further records by another scan that starts after the last key.
pub const SCAN_MAX: usize = 256;

/// A request of the protocol core to the store, a table of records that outlive a crash of the
/// server: insert, delete or list records. The I/O driver executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// Inserts a record, or replaces the record with the same key. The driver completes the request
    /// with [`Outcome::Done`].
    Put(Record),
    /// Deletes the record with this key, if it exists. The driver completes the request with
    /// [`Outcome::Done`].
    Delete(Vec<u8>),
    /// Lists records in the order of their keys, at most [`SCAN_MAX`] of them. The driver completes
    /// the request with [`Outcome::Records`].
    Scan {
        /// Bytes with which the keys of the records start; empty for all records.
        prefix: Vec<u8>,
        /// The last key of the previous answer; the list starts after it. `None` starts at the
        /// first record.
        after: Option<Vec<u8>>,
    },
}

/// A pair of key and value in the store, the table of records that outlive a crash of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key of the record, unique in the store; 1 to [`KEY_MAX`] bytes.
    pub key: Vec<u8>,
    /// The value of the record; 0 to [`VALUE_MAX`] bytes.
    pub value: Vec<u8>,
}

impl Record {
    /// Makes a record from its key and value.
    ///
    /// # Panics
    /// The key is empty, or the key or the value exceeds its limit.
    pub fn new(key: Vec<u8>, value: Vec<u8>) -> Self {
        assert!(
            !key.is_empty() && key.len() <= KEY_MAX,
            "key of {} bytes",
            key.len()
        );
        assert!(value.len() <= VALUE_MAX, "value of {} bytes", value.len());
        Self { key, value }
    }
}

/// The result of a successful request to the store ([`StoreOp`]).
///
/// # Panics
///
/// The `expect_` functions panic if the I/O driver answered with another variant, which is a bug of
/// the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The insertion or deletion is durable.
    Done,
    /// Answers [`StoreOp::Scan`] with records in the order of their keys. Fewer than [`SCAN_MAX`]
    /// records mean the end.
    Records(Vec<Record>),
}

impl Outcome {
    /// Checks that the outcome is [`Done`](Self::Done): an insertion or deletion is durable.
    ///
    /// # Panics
    /// The outcome is [`Records`](Self::Records), the answer to a scan.
    pub fn expect_done(self) {
        let Self::Done = self else {
            panic!("the operation has no value, the driver answered {self:?}");
        };
    }

    /// Returns the records of an outcome [`Records`](Self::Records), the answer to a scan.
    ///
    /// # Panics
    /// The outcome is [`Done`](Self::Done), the answer to an insertion or deletion.
    pub fn expect_records(self) -> Vec<Record> {
        let Self::Records(records) = self else {
            panic!("a scan expects Records, the driver answered {self:?}");
        };
        records
    }
}

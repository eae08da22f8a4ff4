//! Counters of the workers.
//!
//! Each worker has its own counters ([`WorkerCounters`]), which only this worker changes. A reader
//! adds the counters of all workers ([`CounterTotals`]), and asks each worker for its load
//! ([`WorkerLoad`]).

mod counter;
mod load;
mod reasons;
mod statuses;
mod worker_counters;

pub(crate) use counter::HistogramTotal;
pub(crate) use load::{ConnectionKind, WorkerLoad};
pub use reasons::RefusedLogin;
pub(crate) use reasons::{RefusedConnection, RefusedShare};
pub(crate) use worker_counters::{
    CounterTotals, Direction, ShareTotals, StoreOperation, Wait, WorkerCounters,
};

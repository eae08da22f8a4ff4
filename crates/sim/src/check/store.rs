//! The store: a completed operation is durable, and an interrupted one is all or nothing.

use std::collections::BTreeMap;

use proto::store::{Record, StoreOp};

use crate::check::{Check, ensure};

/// The records that the store certainly contains.
#[derive(Debug, Default)]
pub(crate) struct Model {
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Model {
    /// An operation has completed.
    pub(crate) fn completed(&mut self, operation: &StoreOp) {
        match operation {
            StoreOp::Put(Record { key, value }) => {
                self.records.insert(key.clone(), value.clone());
            }
            StoreOp::Delete(key) => {
                self.records.remove(key);
            }
            StoreOp::Scan { .. } => {}
        }
    }

    /// Compares the records after a crash, which interrupted these operations, with the model.
    /// Returns how many of the operations took effect.
    pub(crate) fn recovered<'a>(
        &mut self,
        interrupted: impl Iterator<Item = &'a StoreOp>,
        found: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Check<u64> {
        let mut survived = 0;
        for operation in interrupted {
            let has_effect = match operation {
                StoreOp::Put(Record { key, value }) => found.get(key) == Some(value),
                StoreOp::Delete(key) => !found.contains_key(key),
                StoreOp::Scan { .. } => continue,
            };
            if has_effect {
                self.completed(operation);
                survived += 1;
            }
        }
        ensure(self.records == *found, || {
            format!("the store contains {found:?} instead of {:?}", self.records)
        })?;
        Ok(survived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: u8, value: u8) -> StoreOp {
        StoreOp::Put(Record::new(vec![key], vec![value]))
    }

    fn found(records: &[(u8, u8)]) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let records = records.iter();
        records
            .map(|(key, value)| (vec![*key], vec![*value]))
            .collect()
    }

    #[test]
    fn a_lost_durable_record_is_found() {
        let mut model = Model::default();
        model.completed(&put(1, 7));
        assert!(model.recovered([].iter(), &found(&[])).is_err());
        assert!(model.recovered([].iter(), &found(&[(1, 8)])).is_err());
        assert_eq!(model.recovered([].iter(), &found(&[(1, 7)])), Ok(0));
    }

    #[test]
    fn an_interrupted_operation_is_all_or_nothing() {
        let interrupted = [put(1, 8), StoreOp::Delete(vec![2])];
        let model = || {
            let mut model = Model::default();
            model.completed(&put(1, 7));
            model.completed(&put(2, 7));
            model
        };
        let recovered = |records: &[(u8, u8)]| {
            let found = found(records);
            model().recovered(interrupted.iter(), &found)
        };
        assert_eq!(recovered(&[(1, 7), (2, 7)]), Ok(0));
        assert_eq!(recovered(&[(1, 8), (2, 7)]), Ok(1));
        assert_eq!(recovered(&[(1, 8)]), Ok(2));
        assert!(recovered(&[(1, 9), (2, 7)]).is_err());
        assert!(recovered(&[(1, 8), (2, 7), (3, 1)]).is_err());
    }
}

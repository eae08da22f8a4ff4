//! Injected faults: errors that are rare with devices and cables, as often as a test wants them.

use std::fmt;
use std::str::FromStr;

/// Name of the environment variable that sets the [`Faults`] of the RDMA emulation in a process.
pub const VARIABLE: &str = "SMBEAM_RDMA_FAULTS";

/// Faults that the RDMA emulation injects into connections, for tests. A field that is 0 injects
/// none. The text form is `seed=7,lost=1000,key=500,torn=300,disconnect=200`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Seed of the random number generator that selects the operations with a fault.
    pub seed: u64,
    /// Rate of lost completions: on average one operation in this number reports no completion
    /// until the connection ends. 0 for none.
    pub lost: u64,
    /// Rate of wrong keys: on average one RDMA READ or WRITE in this number uses a wrong key for
    /// the peer's memory, and fails. 0 for none.
    pub key: u64,
    /// Rate of incomplete reads: on average one RDMA READ in this number fails after half of its
    /// bytes. 0 for none.
    pub torn: u64,
    /// Number of operations of a connection after which the emulation ends it. 0 for no limit.
    pub disconnect: u64,
}

/// The reason why a text is not a valid list of [`Faults`]. Its `Display` form is a message for
/// users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultsError(String);

impl fmt::Display for FaultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(part) = self;
        let known = "seed=N, lost=N, key=N, torn=N, disconnect=N";
        write!(f, "`{part}` is none of {known}")
    }
}

impl std::error::Error for FaultsError {}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let wrong = || FaultsError(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let value = value.parse().map_err(|_| wrong())?;
            match name {
                "seed" => faults.seed = value,
                "lost" => faults.lost = value,
                "key" => faults.key = value,
                "torn" => faults.torn = value,
                "disconnect" => faults.disconnect = value,
                _ => return Err(wrong()),
            }
        }
        Ok(faults)
    }
}

impl Faults {
    /// Returns the faults that the environment variable [`VARIABLE`] sets; no faults without the
    /// variable.
    ///
    /// # Errors
    /// The variable is not a valid list of faults.
    pub fn from_environment() -> Result<Self, FaultsError> {
        match std::env::var(VARIABLE) {
            Ok(text) => text.parse(),
            Err(_) => Ok(Self::default()),
        }
    }
}

/// The state of the injected faults of one queue pair.
#[derive(Debug)]
pub(crate) struct Injector {
    faults: Faults,
    random: u64,
    operations: u64,
}

impl Injector {
    pub(crate) fn new(faults: Faults, queue_pair: u64) -> Self {
        Self {
            faults,
            random: faults.seed ^ queue_pair.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            operations: 0,
        }
    }

    /// Counts an operation. Returns whether the connection ends before it.
    pub(crate) fn ends(&mut self) -> bool {
        self.operations += 1;
        self.faults.disconnect > 0 && self.operations > self.faults.disconnect
    }

    /// Whether the completion of an operation is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.one_in(self.faults.lost)
    }

    /// Whether an operation uses a wrong key.
    pub(crate) fn uses_wrong_key(&mut self) -> bool {
        self.one_in(self.faults.key)
    }

    /// Whether an RDMA READ fails halfway.
    pub(crate) fn tears(&mut self) -> bool {
        self.one_in(self.faults.torn)
    }

    fn one_in(&mut self, count: u64) -> bool {
        // splitmix64
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        count > 0 && mixed.is_multiple_of(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_from_text() {
        let all = Faults {
            seed: 1,
            lost: 2,
            key: 3,
            torn: 4,
            disconnect: 5,
        };
        let text = "seed=1,lost=2,key=3,torn=4,disconnect=5";
        assert_eq!(text.parse(), Ok(all));
        assert_eq!("".parse(), Ok(Faults::default()));
        for wrong in ["lost", "lost=x", "los=1", "lost=-1"] {
            let error = wrong.parse::<Faults>().expect_err("wrong");
            assert!(error.to_string().contains(wrong));
        }
    }

    #[test]
    fn faults_happen_only_on_demand() {
        let mut injector = Injector::new(Faults::default(), 1);
        let happens = |injector: &mut Injector| {
            injector.ends() || injector.loses() || injector.uses_wrong_key() || injector.tears()
        };
        assert!(!(0..10_000).any(|_| happens(&mut injector)));
        let faults = "lost=10,key=10,disconnect=100".parse().expect("faults");
        let mut injector = Injector::new(faults, 1);
        let lost = (0..1000).filter(|_| injector.loses()).count();
        assert!((50..200).contains(&lost), "{lost}");
        assert_eq!((0..1000).position(|_| injector.ends()), Some(100));
    }
}

//! NTLMv2 with extended session security. [MS-NLMP]
//!
//! [`acceptor`] is the server, [`initiator`] the client. [`keys`] holds the hashes, proofs and keys
//! of both, on top of the cipher in [`rc4`].

pub(crate) mod acceptor;
pub(crate) mod initiator;
pub(crate) mod keys;
mod rc4;

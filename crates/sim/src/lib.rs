//! The SMB core against a simulated network, disk and clock, from one seed.
#![forbid(unsafe_code)]

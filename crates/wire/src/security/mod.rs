//! Who may do what: SIDs, access control lists and self-relative security descriptors, as
//! QUERY_INFO and SET_INFO carry them. \[MS-DTYP\] 2.4
//!
//! Owned types: a descriptor lives longer than the message that brought it.

mod acl;
mod descriptor;
mod sid;
mod unix;

pub use acl::{Ace, AceFlags, AceType, Acl};
pub use descriptor::{DescriptorControl, SecurityDescriptor};
pub use sid::{ParseSidError, Sid};

pub use crate::query_info::SecurityInformation;

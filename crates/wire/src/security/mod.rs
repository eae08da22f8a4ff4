//! Security descriptors, access control lists and SIDs, as QUERY_INFO and SET_INFO carry them.
//! \[MS-DTYP\] 2.4
//!
//! The types own their data, because a descriptor outlives the message that carried it.

mod acl;
mod descriptor;
mod generic;
mod sddl;
mod sid;
mod unix;
mod well_known;

pub use acl::{Ace, AceFlags, AceType, Acl};
pub use descriptor::{DescriptorControl, SecurityDescriptor};
pub use sddl::ParseSddlError;
pub use sid::{ParseSidError, Sid};
pub use well_known::{WELL_KNOWN, WellKnownSid};

pub use crate::query_info::SecurityInformation;

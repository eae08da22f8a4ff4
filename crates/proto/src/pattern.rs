//! DOS wildcards. \[MS-FSA\] 2.1.4.4

use alloc::string::String;

/// A pattern of QUERY_DIRECTORY, matched without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

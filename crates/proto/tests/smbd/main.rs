//! The promises of the SMB Direct core. \[MS-SMBD\]

mod pair;

mod connections_are_negotiated;
mod credits_limit_sends;
mod messages_arrive_whole;
mod silence_ends;

//! What the core of SMB Direct promises. \[MS-SMBD\]

mod pair;

mod connections_are_negotiated;
mod credits_are_kept;
mod messages_arrive_whole;
mod silence_ends;

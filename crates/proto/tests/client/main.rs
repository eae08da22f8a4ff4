//! The client's half of the protocol, joined to the server's half in memory, or to a server that
//! lies. A file for each promise.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps nothing fails, as it should"
)]

// As the other crates call it.
extern crate smbeam_proto as proto;

mod forge;
#[path = "../server/harness/mod.rs"]
#[allow(dead_code, reason = "the tests of the server need more of it")]
#[allow(unused_imports, reason = "the same")]
mod harness;
mod link;

mod channels_share_a_session;
mod credits_and_time_are_kept;
mod data_go_through_named_memory;
mod files_are_written_and_read_in_every_dialect;
mod login_is_believed_only_with_proof;
mod lost_requests_are_sent_again_where_that_is_safe;
mod many_files_are_read_by_one_message;
mod opens_outlive_their_session;
mod oplocks_are_given_back_when_asked;
mod requests_go_in_turn;
mod server_that_lies_is_found_out;
mod transport_is_trusted_if_both_say_so;
mod what_is_protected_stays_protected;

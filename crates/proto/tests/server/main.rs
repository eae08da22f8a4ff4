//! The server's half of the protocol, driven as a worker would drive it: frames in, effects out.
//! A file for each promise.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps nothing fails, as it should"
)]

// As the other crates call it.
extern crate smbeam_proto as proto;

mod harness;

mod bindings_are_proven_twice;
mod changes_are_told_to_whoever_watches;
mod channels_come_and_go_at_any_time;
mod compound_members_look_everything_up_anew;
mod connection_takes_what_ends_with_it_along;
mod copies_end_with_whoever_wants_them;
mod credits_are_a_window;
mod garbage_ends_the_connection;
mod interfaces_are_told_to_who_may_bind;
mod locks_are_granted_in_order;
mod locks_keep_others_from_bytes;
mod login_is_proven_before_anything_else;
mod memory_is_named_and_given_back;
mod negotiation_chooses_the_best_of_both;
mod opens_outlive_a_lost_session;
mod oplocks_break_before_others_see_the_file;
mod oplocks_leave_nobody_waiting;
mod oplocks_outlive_nobody;
mod pipes_carry_messages;
mod pipes_list_shares;
mod replays_take_effect_once;
mod requests_of_what_is_not_built_are_refused;
mod sealed_requests_get_sealed_answers;
mod session_lives_as_long_as_one_of_its_channels;
mod sessions_share_the_room_of_their_connection;
mod share_decides_who_enters;
mod snapshots_tell_what_is_open;
mod transport_that_is_safe_spares_the_seal;
mod unsigned_request_is_refused_when_signing_is_required;
mod what_a_driver_lost_holds_nothing;
mod who_watches_misses_nothing;

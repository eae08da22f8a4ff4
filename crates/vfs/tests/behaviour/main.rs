//! The promises of every file system: each of them runs against each implementation.

extern crate smbeam_vfs as vfs;

mod attributes;
mod data;
mod directories;
mod extended_attributes;
mod handles;
mod names;
mod opening;
mod ranges;
mod reparse;
mod rights;
mod security;
mod share;
mod streams;

/// Runs every promise on every file system.
macro_rules! promises {
    ($($module:ident { $($promise:ident,)* })*) => {
        mod memory {
            $(mod $module { $(
                #[test]
                fn $promise() {
                    crate::$module::$promise(&crate::share::Share::memory());
                }
            )* })*
        }

        mod posix {
            $(mod $module { $(
                #[test]
                fn $promise() {
                    crate::$module::$promise(&crate::share::Share::posix());
                }
            )* })*
        }

        mod large_streams {
            $(mod $module { $(
                #[test]
                fn $promise() {
                    crate::$module::$promise(&crate::share::Share::large_streams());
                }
            )* })*
        }

        mod tmpfs {
            $(mod $module { $(
                #[test]
                fn $promise() {
                    crate::$module::$promise(&crate::share::Share::tmpfs());
                }
            )* })*
        }
    };
}

promises! {
    opening {
        a_file_that_is_missing_is_not_found,
        a_missing_parent_is_a_missing_path,
        a_file_as_parent_is_a_missing_path,
        a_new_file_is_created_once,
        open_or_create_reports_which,
        a_directory_is_created_and_opened,
        the_wrong_kind_is_refused,
        the_root_opens,
        names_are_found_without_regard_to_case,
        the_exact_directory_is_spelled_as_it_is,
        a_closed_open_is_removed,
        another_shares_open_is_not_ours,
    }
    data {
        written_bytes_are_read,
        reads_end_at_the_end,
        an_append_goes_to_the_end,
        a_write_past_the_end_leaves_zeros,
        the_end_of_a_file_moves,
        allocation_below_the_end_cuts,
        allocation_above_the_end_does_not_grow_the_file,
        an_overwrite_leaves_nothing,
        a_file_opened_for_reading_is_not_written,
        a_directory_has_no_bytes,
    }
    ranges {
        a_copy_brings_the_bytes_and_no_more,
        a_copy_within_a_file_may_overlap_either_way,
        a_copy_ends_before_the_source_does,
        a_copy_needs_the_rights_to_read_and_to_write,
        a_copy_between_shares_brings_the_bytes,
        a_large_copy_is_whole,
        zeros_replace_bytes_and_move_no_end,
        zeros_need_the_right_to_write,
        a_trim_changes_no_byte_outside_of_its_range,
        sparse_is_set_and_cleared_by_itself,
        an_overwritten_file_is_not_sparse,
        a_hole_in_a_sparse_file_takes_no_space,
        a_file_that_is_not_sparse_takes_all_its_space,
        ranges_are_listed_up_to_a_limit,
        ranges_need_the_right_to_read,
        directories_have_no_ranges,
        a_cloned_range_has_the_bytes_of_its_source,
        a_clone_needs_the_rights_to_read_and_to_write,
        a_file_is_compressed_where_the_file_system_can,
    }
    names {
        a_rename_keeps_the_open,
        a_rename_to_a_taken_name_collides,
        a_rename_replaces_if_requested,
        a_rename_replaces_a_protected_file_only_on_request,
        a_rename_never_replaces_a_directory,
        a_rename_may_change_only_the_case,
        a_name_of_other_case_is_taken_too,
        replacing_a_name_of_other_case_takes_the_new_spelling,
        a_rename_moves_between_directories,
        a_directory_does_not_move_into_itself,
        every_open_of_a_renamed_file_has_the_new_name,
        an_unlink_removes_the_renamed_name,
        an_unlink_follows_a_renamed_parent,
        an_unlink_never_removes_another_file,
        an_unlink_removes_the_requested_name,
        a_full_directory_stays,
        a_file_lives_on_while_open,
        a_link_is_a_second_name,
        a_link_to_a_taken_name_collides,
        a_link_replaces_if_requested,
        a_lookup_finds_and_misses,
    }
    extended_attributes {
        extended_attributes_are_set_replaced_and_deleted,
        directories_have_extended_attributes,
        reserved_extended_attributes_are_refused_before_any_change,
        extended_attributes_have_a_maximum_length,
    }
    handles {
        a_file_is_reopened_by_its_handle,
        a_renamed_file_is_reopened_by_its_handle,
        a_deleted_file_is_not_reopened,
        bytes_that_are_no_handle_open_nothing,
    }
    attributes {
        a_new_file_wants_to_be_archived,
        attributes_and_times_are_stored,
        a_name_with_a_dot_is_hidden,
        a_read_only_file_is_not_written_or_deleted,
        a_read_only_file_is_not_replaced,
        an_overwrite_replaces_the_attributes,
        the_kind_is_not_an_attribute_to_set,
    }
    directories {
        an_empty_directory_lists_itself_and_its_parent,
        a_listing_continues_where_it_ended,
        a_restart_begins_again,
        one_name_is_looked_up,
        a_pattern_selects,
        entries_have_the_metadata_of_an_open,
        the_parent_of_the_root_is_the_root,
        a_file_is_not_listed,
        a_listing_survives_removals,
    }
    reparse {
        a_reparse_point_is_set_and_removed,
        a_listing_has_the_tags_of_reparse_points,
        only_an_empty_directory_becomes_a_reparse_point,
        an_open_stops_on_a_reparse_point_of_its_path,
        an_open_stops_before_its_kind_and_rights_are_checked,
    }
    streams {
        a_stream_has_bytes_of_its_own,
        a_stream_is_found_and_created_as_asked,
        a_stream_has_the_metadata_of_its_file,
        a_directory_has_named_streams_only,
        the_length_of_a_stream_changes,
        an_overwritten_file_loses_its_streams,
        a_stream_is_removed,
        a_stream_is_renamed,
        a_stream_follows_its_renamed_file,
        a_copy_reads_and_writes_streams,
    }
    security {
        a_file_without_a_descriptor_has_that_of_its_mode,
        a_descriptor_is_kept_as_sent,
        a_descriptor_decides_about_opens,
        a_directory_grants_the_deletion_of_its_files,
        a_directory_decides_about_new_files,
        new_files_inherit,
        a_new_file_gets_the_descriptor_of_its_request,
        the_mode_wins_if_it_changes_later,
        users_give_files_to_themselves_only,
    }
    rights {
        the_owner_has_everything_asked_for,
        maximum_allowed_is_spelled_out,
        implied_rights_are_checked_and_not_granted,
        permissions_decide_and_are_changed,
        the_root_is_not_deleted,
    }
}

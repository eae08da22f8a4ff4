//! The promises of the crate for both drivers: one list of scenarios, which runs with each.

use std::net::{Ipv4Addr, SocketAddr};

use smbeam_ring::{Config, Handle, Io, Listener, PoolConfig, Runtime, Stream};

mod scenarios;

/// Runs a scenario with a driver, with and without registered memory.
fn run<F: AsyncFn(Handle)>(io: Io, scenario: F) {
    run_with(io, true, &scenario);
    run_with(io, false, &scenario);
}

/// Runs a scenario, and checks that nothing is left when the runtime ends.
fn run_with<F: AsyncFn(Handle)>(io: Io, registered: bool, scenario: &F) {
    let buffers = PoolConfig {
        total_bytes: 24 << 20,
        registered,
        chunks: 64,
        chunk_bytes: 4096,
    };
    let config = Config {
        io,
        entries: 64,
        buffers,
        blocking_threads: 3,
    };
    let runtime = Runtime::new(&config).expect("the driver is available");
    let handle = runtime.handle();
    runtime.block_on(scenario(handle.clone()));
    drop(runtime);
    assert_eq!(
        handle.pending_operations(),
        0,
        "the kernel has released all memory"
    );
    assert_eq!(handle.chunks_out(), 0, "every chunk came home");
    assert_eq!(handle.pool().buffers_out(), 0, "every buffer came home");
}

/// A listener on a free port, and its address.
fn listen(handle: &Handle) -> (Listener, SocketAddr) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(handle, any, false).expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    (listener, address)
}

/// Two ends of one connection.
async fn pair(handle: &Handle) -> (Stream, Stream) {
    let (listener, address) = listen(handle);
    let client = Stream::connect(handle, address).await.expect("connect");
    (client, listener.accept().await.expect("accept"))
}

/// A small generator of reproducible bytes and sizes (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 1 to `most`.
    fn size(&mut self, most: usize) -> usize {
        1 + (self.next() % most as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..length.div_ceil(8))
            .flat_map(|_| self.next().to_le_bytes())
            .collect();
        bytes.truncate(length);
        bytes
    }
}

macro_rules! over_both_drivers {
    ($($module:ident: $($name:ident),+;)+) => {
        mod uring { $($(
            #[test]
            fn $name() { super::run(smbeam_ring::Io::Uring, super::scenarios::$module::$name); }
        )+)+ }
        mod epoll { $($(
            #[test]
            fn $name() { super::run(smbeam_ring::Io::Epoll, super::scenarios::$module::$name); }
        )+)+ }
    };
}

over_both_drivers! {
    sockets: echoes_many_connections, accepts_a_storm, refused_connect_is_an_error,
        closes_while_operations_are_outstanding,
        end_of_stream_is_an_empty_chunk;
    bulk: segments_of_any_size_arrive_whole, chunks_and_buffers_interleave,
        files_are_sent_like_memory, a_truncated_file_reports_an_error,
        a_file_for_a_silent_peer_blocks_no_other_task,
        views_are_sent_like_memory, a_view_of_a_truncated_file_ends_in_zeros,
        a_large_receive_waits_for_no_more_than_it_wants, a_large_receive_sees_the_end,
        an_interrupted_receive_loses_no_byte,
        many_parts_are_sent_in_order, held_chunks_stop_the_stream_until_one_returns,
        a_silent_reader_leaves_chunks_to_others;
    datagrams: batches_arrive_as_they_were_cut, datagrams_outlive_their_batch,
        addresses_and_marks_come_along, the_sixth_version_does_the_same,
        a_dropped_receive_loses_no_datagram, a_flood_is_received_up_to_the_limit_of_the_buffers,
        sockets_of_one_port_share_by_connection;
    drops: a_dropped_recv_loses_nothing, a_dropped_recv_into_tears_the_stream,
        memory_of_others_outlives_a_dropped_receive, memory_of_others_outlives_a_dropped_send,
        a_dropped_send_breaks_the_stream, a_dropped_accept_is_harmless;
    memory: an_empty_pool_says_so, a_returned_buffer_ends_the_wait,
        idle_memory_moves_between_classes, a_buffer_may_be_dropped_on_any_thread,
        waiting_holders_get_buffers_in_turn, unused_memory_returns_to_the_system;
    files: written_data_is_read_back, reads_end_at_end_of_file, errors_come_back_with_the_buffer,
        a_full_file_system_is_an_error, large_files_use_offsets,
        credentials_last_until_the_last_operation;
    executor: sleeps_end_in_order, timeout_drops_the_future, a_busy_task_does_not_starve_io,
        a_panic_ends_one_task, abort_drops_the_future, blocking_runs_elsewhere,
        blocking_panics_continue_here;
    messages: many_threads_send, a_full_mailbox_refuses, senders_gone_ends_the_receiver,
        a_message_precedes_later_data, runtimes_send_to_each_other;
    readiness: a_descriptor_is_ready_until_it_is_read, a_full_descriptor_becomes_writable,
        a_closed_peer_is_ready, a_dropped_wait_is_harmless,
        a_descriptor_may_be_closed_while_it_is_waited_for;
}

//! Creates a ring and checks that the kernel supports all required features.

use std::io;

use io_uring::{IoUring, Probe, opcode};

/// Completion queue entries for each submission queue entry: multishot operations complete often.
const COMPLETIONS_PER_ENTRY: u32 = 4;

/// Operations that the driver uses, by name and code.
const NEEDED: [(&str, u8); 12] = [
    ("ACCEPT", opcode::AcceptMulti::CODE),
    ("ASYNC_CANCEL", opcode::AsyncCancel::CODE),
    ("CONNECT", opcode::Connect::CODE),
    ("FSYNC", opcode::Fsync::CODE),
    ("MSG_RING", opcode::MsgRingData::CODE),
    ("POLL_ADD", opcode::PollAdd::CODE),
    ("READ", opcode::Read::CODE),
    ("READ_FIXED", opcode::ReadFixed::CODE),
    ("RECV", opcode::Recv::CODE),
    ("SENDMSG", opcode::SendMsg::CODE),
    ("WRITE", opcode::Write::CODE),
    ("WRITE_FIXED", opcode::WriteFixed::CODE),
];

/// Creates a ring with the best flags that the kernel accepts. Returns it with the names of the
/// flags, or returns the missing feature.
pub(crate) fn set_up(entries: u32) -> Result<(IoUring, String), String> {
    let (ring, flags) = build(entries)?;
    check_features(&ring)?;
    check_opcodes(&ring)?;
    Ok((ring, flags))
}

fn build(entries: u32) -> Result<(IoUring, String), String> {
    // SINGLE_ISSUER is as old as multishot receive (Linux 6.0), so a kernel without it lacks too
    // much.
    let deferred = configure(entries, true);
    if let Ok(ring) = deferred {
        return Ok((ring, "SINGLE_ISSUER|DEFER_TASKRUN|COOP_TASKRUN".to_owned()));
    }
    match configure(entries, false) {
        Ok(ring) => Ok((ring, "SINGLE_ISSUER|COOP_TASKRUN".to_owned())),
        Err(error) => Err(format!("io_uring_setup: {error}")),
    }
}

fn configure(entries: u32, is_deferred: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder
        .setup_cqsize(entries * COMPLETIONS_PER_ENTRY)
        .setup_clamp()
        .setup_submit_all()
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .dontfork();
    if is_deferred {
        builder.setup_defer_taskrun();
    }
    builder.build(entries)
}

fn check_features(ring: &IoUring) -> Result<(), String> {
    let features = ring.params();
    let needed = [
        ("NODROP", features.is_feature_nodrop()),
        ("EXT_ARG", features.is_feature_ext_arg()),
        ("FAST_POLL", features.is_feature_fast_poll()),
    ];
    match needed.into_iter().find(|(_, is_supported)| !is_supported) {
        Some((name, _)) => Err(format!("the kernel's io_uring lacks the feature {name}")),
        None => Ok(()),
    }
}

fn check_opcodes(ring: &IoUring) -> Result<(), String> {
    let mut probe = Probe::new();
    let result = ring.submitter().register_probe(&mut probe);
    result.map_err(|error| format!("IORING_REGISTER_PROBE: {error}"))?;
    match NEEDED
        .into_iter()
        .find(|(_, code)| !probe.is_supported(*code))
    {
        Some((name, _)) => Err(format!("the kernel's io_uring lacks the operation {name}")),
        None => Ok(()),
    }
}

//! The memory layouts of librdmacm.so.1 and libibverbs.so.1 that this crate uses.
//!
//! The operations of the fast path (post, poll, arm) are not symbols of the library: a C program
//! reaches them through the table of operations in a device's context. So the layouts must match to
//! the byte. A C program printed `sizeof` and `offsetof` of all declarations and all constants,
//! with the headers of rdma-core 44 and 65 (the same values, x86-64). The assertions at the end
//! compare the Rust declarations with them. The layouts are part of the libraries' stable ABI
//! (IBVERBS_1.1, RDMACM_1.0) and do not change within `.so.1`.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// An open device: `ibv_context`.
#[repr(C)]
pub(super) struct Context {
    pub(super) device: *mut Device,
    pub(super) ops: ContextOps,
    pub(super) cmd_fd: c_int,
    pub(super) async_fd: c_int,
    pub(super) num_comp_vectors: c_int,
    mutex: libc::pthread_mutex_t,
    /// All bits set if the context follows the extended fields.
    pub(super) abi_compat: *mut c_void,
}

/// An entry of the table that only old programs call, or that this crate does not use.
type Unused = *const c_void;

/// The operations of a device's driver: `ibv_context_ops`.
#[repr(C)]
pub(super) struct ContextOps {
    unused_0: [Unused; 7],
    pub(super) alloc_mw: Option<unsafe extern "C" fn(*mut Pd, c_uint) -> *mut Mw>,
    bind_mw: Unused,
    pub(super) dealloc_mw: Option<unsafe extern "C" fn(*mut Mw) -> c_int>,
    unused_10: Unused,
    pub(super) poll_cq: unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int,
    pub(super) req_notify_cq: unsafe extern "C" fn(*mut Cq, c_int) -> c_int,
    unused_13: [Unused; 12],
    pub(super) post_send: unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int,
    pub(super) post_recv: unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int,
    unused_27: [Unused; 5],
}

/// Distance in bytes from the size of the extended context to the [`Context`] (`verbs_context`).
pub(super) const EXTENDED_SIZE_BEFORE: usize = 8;
/// Distance in bytes from the operation `modify_cq` to the [`Context`].
pub(super) const MODIFY_CQ_BEFORE: usize = 184;
/// Smallest size in bytes of an extended context with `modify_cq`.
pub(super) const MODIFY_CQ_EXTENDED_SIZE: usize = MODIFY_CQ_BEFORE + size_of::<Context>();

/// The operation at [`MODIFY_CQ_BEFORE`].
pub(super) type ModifyCq = Option<unsafe extern "C" fn(*mut Cq, *mut ModifyCqAttr) -> c_int>;

/// `ibv_device`.
#[repr(C)]
pub(super) struct Device {
    ops: [Unused; 2],
    pub(super) node_type: c_int,
    pub(super) transport_type: c_int,
    /// Name of the device, for example `siw0`; ends with a zero.
    pub(super) name: [c_char; 64],
    /// Name of the device file, for example `uverbs0`; ends with a zero.
    pub(super) dev_name: [c_char; 64],
    dev_path: [c_char; 256],
    pub(super) ibdev_path: [c_char; 256],
}

pub(super) const TRANSPORT_IWARP: c_int = 1;

/// Capabilities of a device: `ibv_device_attr`.
#[repr(C)]
pub(super) struct DeviceAttr {
    pub(super) fw_ver: [c_char; 64],
    pub(super) node_guid: u64,
    pub(super) sys_image_guid: u64,
    pub(super) max_mr_size: u64,
    pub(super) page_size_cap: u64,
    pub(super) vendor_id: u32,
    pub(super) vendor_part_id: u32,
    pub(super) hw_ver: u32,
    pub(super) max_qp: c_int,
    pub(super) max_qp_wr: c_int,
    pub(super) device_cap_flags: c_uint,
    pub(super) max_sge: c_int,
    pub(super) max_sge_rd: c_int,
    pub(super) max_cq: c_int,
    pub(super) max_cqe: c_int,
    pub(super) max_mr: c_int,
    pub(super) max_pd: c_int,
    /// Incoming READs in flight per queue pair.
    pub(super) max_qp_rd_atom: c_int,
    max_ee_rd_atom: c_int,
    max_res_rd_atom: c_int,
    /// Outgoing READs in flight per queue pair.
    pub(super) max_qp_init_rd_atom: c_int,
    max_ee_init_rd_atom: c_int,
    atomic_cap: c_int,
    max_ee: c_int,
    max_rdd: c_int,
    pub(super) max_mw: c_int,
    unused: [c_int; 11],
    max_pkeys: u16,
    local_ca_ack_delay: u8,
    pub(super) phys_port_cnt: u8,
}

pub(super) const DEVICE_MEM_WINDOW_TYPE_2A: c_uint = 1 << 23;
pub(super) const DEVICE_MEM_WINDOW_TYPE_2B: c_uint = 1 << 24;

/// Protection domain: `ibv_pd`.
#[repr(C)]
pub(super) struct Pd {
    pub(super) context: *mut Context,
    handle: u32,
}

/// Registered memory: `ibv_mr`.
#[repr(C)]
pub(super) struct Mr {
    context: *mut Context,
    pd: *mut Pd,
    pub(super) addr: *mut c_void,
    pub(super) length: usize,
    handle: u32,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
}

pub(super) const ACCESS_LOCAL_WRITE: c_int = 1;
pub(super) const ACCESS_REMOTE_WRITE: c_int = 2;
pub(super) const ACCESS_REMOTE_READ: c_int = 4;
pub(super) const ACCESS_MW_BIND: c_int = 16;

/// Memory window: `ibv_mw`.
#[repr(C)]
pub(super) struct Mw {
    pub(super) context: *mut Context,
    pd: *mut Pd,
    pub(super) rkey: u32,
    handle: u32,
    kind: c_int,
}

pub(super) const MW_TYPE_2: c_uint = 2;

/// `ibv_comp_channel`.
#[repr(C)]
pub(super) struct CompChannel {
    context: *mut Context,
    pub(super) fd: c_int,
    refcnt: c_int,
}

/// Completion queue: the start of `ibv_cq`. Only the library creates one.
#[repr(C)]
pub(super) struct Cq {
    pub(super) context: *mut Context,
    channel: *mut CompChannel,
    cq_context: *mut c_void,
    handle: u32,
    pub(super) cqe: c_int,
}

/// `ibv_modify_cq_attr`.
#[repr(C)]
pub(super) struct ModifyCqAttr {
    pub(super) attr_mask: u32,
    pub(super) count: u16,
    pub(super) period_us: u16,
}

pub(super) const CQ_ATTR_MODERATE: u32 = 1;

/// Queue pair: the start of `ibv_qp`. Only the library creates one.
#[repr(C)]
pub(super) struct Qp {
    pub(super) context: *mut Context,
    qp_context: *mut c_void,
    pd: *mut Pd,
    send_cq: *mut Cq,
    recv_cq: *mut Cq,
    srq: *mut c_void,
    handle: u32,
    pub(super) qp_num: u32,
}

/// `ibv_qp_cap`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct QpCap {
    pub(super) max_send_wr: u32,
    pub(super) max_recv_wr: u32,
    pub(super) max_send_sge: u32,
    pub(super) max_recv_sge: u32,
    pub(super) max_inline_data: u32,
}

/// `ibv_qp_init_attr`.
#[repr(C)]
pub(super) struct QpInitAttr {
    pub(super) qp_context: *mut c_void,
    pub(super) send_cq: *mut Cq,
    pub(super) recv_cq: *mut Cq,
    pub(super) srq: *mut c_void,
    pub(super) cap: QpCap,
    pub(super) qp_type: c_int,
    pub(super) sq_sig_all: c_int,
}

pub(super) const QPT_RC: c_int = 2;

/// A piece of registered memory: `ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sge {
    pub(super) addr: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

/// The region that a window is bound to: `ibv_mw_bind_info`.
#[repr(C)]
pub(super) struct MwBindInfo {
    pub(super) mr: *mut Mr,
    pub(super) addr: u64,
    pub(super) length: u64,
    pub(super) access: c_uint,
}

/// `ibv_send_wr`, with the members of its unions that this crate uses.
#[repr(C)]
pub(super) struct SendWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut SendWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
    pub(super) opcode: c_int,
    pub(super) send_flags: c_uint,
    pub(super) invalidate_rkey: u32,
    pub(super) remote_addr: u64,
    pub(super) rkey: u32,
    unused: [u32; 7],
    pub(super) mw: *mut Mw,
    pub(super) mw_rkey: u32,
    pub(super) bind_info: MwBindInfo,
}

pub(super) const WR_RDMA_WRITE: c_int = 0;
pub(super) const WR_SEND: c_int = 2;
pub(super) const WR_RDMA_READ: c_int = 4;
pub(super) const WR_LOCAL_INV: c_int = 7;
pub(super) const WR_BIND_MW: c_int = 8;
pub(super) const WR_SEND_WITH_INV: c_int = 9;

pub(super) const SEND_SIGNALED: c_uint = 2;
pub(super) const SEND_SOLICITED: c_uint = 4;

impl SendWr {
    /// A request with an operation code and an id, and nothing else.
    pub(super) fn new(wr_id: u64, opcode: c_int, send_flags: c_uint) -> Self {
        Self {
            wr_id,
            next: std::ptr::null_mut(),
            sg_list: std::ptr::null_mut(),
            num_sge: 0,
            opcode,
            send_flags,
            invalidate_rkey: 0,
            remote_addr: 0,
            rkey: 0,
            unused: [0; 7],
            mw: std::ptr::null_mut(),
            mw_rkey: 0,
            bind_info: MwBindInfo {
                mr: std::ptr::null_mut(),
                addr: 0,
                length: 0,
                access: 0,
            },
        }
    }
}

/// `ibv_recv_wr`.
#[repr(C)]
pub(super) struct RecvWr {
    pub(super) wr_id: u64,
    pub(super) next: *mut RecvWr,
    pub(super) sg_list: *mut Sge,
    pub(super) num_sge: c_int,
}

/// A completion: `ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wc {
    pub(super) wr_id: u64,
    pub(super) status: c_int,
    pub(super) opcode: c_int,
    pub(super) vendor_err: u32,
    pub(super) byte_len: u32,
    pub(super) invalidated_rkey: u32,
    qp_num: u32,
    src_qp: u32,
    pub(super) wc_flags: c_uint,
    pkey_index: u16,
    slid: u16,
    sl: u8,
    dlid_path_bits: u8,
}

pub(super) const WC_SUCCESS: c_int = 0;
pub(super) const WC_LOC_LEN_ERR: c_int = 1;
pub(super) const WC_WR_FLUSH_ERR: c_int = 5;
pub(super) const WC_REM_INV_REQ_ERR: c_int = 9;
pub(super) const WC_REM_ACCESS_ERR: c_int = 10;
pub(super) const WC_RETRY_EXC_ERR: c_int = 12;
pub(super) const WC_RNR_RETRY_EXC_ERR: c_int = 13;
pub(super) const WC_WITH_IMM: c_uint = 2;
pub(super) const WC_WITH_INV: c_uint = 8;
/// rxe sets this instead of [`WC_WITH_INV`]: it passes the kernel's number on unchanged (observed
/// with Linux 7.3). In the library the number means a valid checksum, which reliable connections do
/// not report.
pub(super) const WC_WITH_INV_OF_RXE: c_uint = 4;

impl Wc {
    /// The key that a SEND of the peer has invalidated.
    pub(super) fn invalidated_key(&self) -> Option<u32> {
        let is_said = self.wc_flags & (WC_WITH_INV | WC_WITH_INV_OF_RXE) != 0;
        // The field may hold immediate data of the peer instead, which is not a key.
        let is_other = self.wc_flags & WC_WITH_IMM != 0;
        (is_said && !is_other).then_some(self.invalidated_rkey)
    }
}

/// `rdma_event_channel`.
#[repr(C)]
pub(super) struct EventChannel {
    pub(super) fd: c_int,
}

/// The start of `rdma_cm_id`. Only the library creates one.
#[repr(C)]
pub(super) struct CmId {
    /// The device that the identifier is bound to; null before.
    pub(super) verbs: *mut Context,
    pub(super) channel: *mut EventChannel,
    context: *mut c_void,
    pub(super) qp: *mut Qp,
    /// `route.addr`: the addresses of both peers; family 0 if unknown.
    pub(super) source: libc::sockaddr_storage,
    pub(super) destination: libc::sockaddr_storage,
}

/// Port space of reliable connections.
pub(super) const PS_TCP: c_int = 0x0106;
pub(super) const OPTION_ID: c_int = 0;
pub(super) const OPTION_ID_REUSEADDR: c_int = 1;
pub(super) const OPTION_ID_AFONLY: c_int = 2;

/// `rdma_conn_param`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ConnParam {
    pub(super) private_data: *const c_void,
    pub(super) private_data_len: u8,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) flow_control: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    pub(super) srq: u8,
    pub(super) qp_num: u32,
}

/// `rdma_cm_event`. The union at its end is larger, because it also serves datagrams.
#[repr(C)]
pub(super) struct CmEvent {
    pub(super) id: *mut CmId,
    pub(super) listen_id: *mut CmId,
    pub(super) event: c_int,
    pub(super) status: c_int,
    pub(super) conn: ConnParam,
    unused: [u64; 4],
}

pub(super) const EVENT_ADDR_RESOLVED: c_int = 0;
pub(super) const EVENT_ADDR_ERROR: c_int = 1;
pub(super) const EVENT_ROUTE_RESOLVED: c_int = 2;
pub(super) const EVENT_ROUTE_ERROR: c_int = 3;
pub(super) const EVENT_CONNECT_REQUEST: c_int = 4;
pub(super) const EVENT_CONNECT_ERROR: c_int = 6;
pub(super) const EVENT_UNREACHABLE: c_int = 7;
pub(super) const EVENT_REJECTED: c_int = 8;
pub(super) const EVENT_ESTABLISHED: c_int = 9;
pub(super) const EVENT_DISCONNECTED: c_int = 10;
pub(super) const EVENT_DEVICE_REMOVAL: c_int = 11;

/// The values that the C program printed.
#[cfg(target_pointer_width = "64")]
mod layout {
    use std::mem::{offset_of, size_of};

    #[cfg(target_arch = "x86_64")]
    use super::MODIFY_CQ_EXTENDED_SIZE;
    use super::{
        CmEvent, CmId, CompChannel, ConnParam, Context, ContextOps, Cq, Device, DeviceAttr,
        EventChannel, ModifyCqAttr, Mr, Mw, MwBindInfo, Pd, Qp, QpCap, QpInitAttr, RecvWr, SendWr,
        Sge, Wc,
    };

    // `pthread_mutex_t` has a different size on other machines, which moves the following fields.
    #[cfg(target_arch = "x86_64")]
    const _: () = {
        assert!(size_of::<Context>() == 328);
        assert!(offset_of!(Context, abi_compat) == 320);
        assert!(MODIFY_CQ_EXTENDED_SIZE == 512);
    };
    const _: () = {
        assert!(offset_of!(Context, ops) == 8);
        assert!(offset_of!(Context, ops.alloc_mw) == 64);
        assert!(offset_of!(Context, ops.dealloc_mw) == 80);
        assert!(offset_of!(Context, ops.poll_cq) == 96);
        assert!(offset_of!(Context, ops.req_notify_cq) == 104);
        assert!(offset_of!(Context, ops.post_send) == 208);
        assert!(offset_of!(Context, ops.post_recv) == 216);
        assert!(offset_of!(Context, cmd_fd) == 264);
        assert!(offset_of!(Context, async_fd) == 268);
        assert!(offset_of!(Context, num_comp_vectors) == 272);
        assert!(size_of::<ContextOps>() == 256);
    };
    const _: () = {
        assert!(size_of::<Device>() == 664);
        assert!(offset_of!(Device, node_type) == 16);
        assert!(offset_of!(Device, transport_type) == 20);
        assert!(offset_of!(Device, name) == 24);
        assert!(offset_of!(Device, ibdev_path) == 408);
        assert!(size_of::<DeviceAttr>() == 232);
        assert!(offset_of!(DeviceAttr, node_guid) == 64);
        assert!(offset_of!(DeviceAttr, max_mr_size) == 80);
        assert!(offset_of!(DeviceAttr, vendor_id) == 96);
        assert!(offset_of!(DeviceAttr, max_qp_wr) == 112);
        assert!(offset_of!(DeviceAttr, device_cap_flags) == 116);
        assert!(offset_of!(DeviceAttr, max_sge) == 120);
        assert!(offset_of!(DeviceAttr, max_sge_rd) == 124);
        assert!(offset_of!(DeviceAttr, max_cqe) == 132);
        assert!(offset_of!(DeviceAttr, max_mr) == 136);
        assert!(offset_of!(DeviceAttr, max_qp_rd_atom) == 144);
        assert!(offset_of!(DeviceAttr, max_qp_init_rd_atom) == 156);
        assert!(offset_of!(DeviceAttr, atomic_cap) == 164);
        assert!(offset_of!(DeviceAttr, max_mw) == 176);
        assert!(offset_of!(DeviceAttr, max_pkeys) == 224);
        assert!(offset_of!(DeviceAttr, phys_port_cnt) == 227);
    };
    const _: () = {
        assert!(size_of::<Pd>() == 16);
        assert!(size_of::<Mr>() == 48);
        assert!(offset_of!(Mr, addr) == 16);
        assert!(offset_of!(Mr, length) == 24);
        assert!(offset_of!(Mr, lkey) == 36);
        assert!(offset_of!(Mr, rkey) == 40);
        assert!(size_of::<Mw>() == 32);
        assert!(offset_of!(Mw, rkey) == 16);
        assert!(offset_of!(Mw, kind) == 24);
        assert!(size_of::<CompChannel>() == 16);
        assert!(offset_of!(CompChannel, fd) == 8);
        assert!(offset_of!(Cq, handle) == 24);
        assert!(offset_of!(Cq, cqe) == 28);
        assert!(size_of::<ModifyCqAttr>() == 8);
        assert!(offset_of!(ModifyCqAttr, count) == 4);
        assert!(offset_of!(ModifyCqAttr, period_us) == 6);
        assert!(offset_of!(Qp, qp_num) == 52);
        assert!(size_of::<QpCap>() == 20);
        assert!(size_of::<QpInitAttr>() == 64);
        assert!(offset_of!(QpInitAttr, cap) == 32);
        assert!(offset_of!(QpInitAttr, qp_type) == 52);
        assert!(offset_of!(QpInitAttr, sq_sig_all) == 56);
    };
    const _: () = {
        assert!(size_of::<Sge>() == 16);
        assert!(offset_of!(Sge, length) == 8);
        assert!(offset_of!(Sge, lkey) == 12);
        assert!(size_of::<MwBindInfo>() == 32);
        assert!(offset_of!(MwBindInfo, access) == 24);
        assert!(size_of::<SendWr>() == 128);
        assert!(offset_of!(SendWr, num_sge) == 24);
        assert!(offset_of!(SendWr, opcode) == 28);
        assert!(offset_of!(SendWr, send_flags) == 32);
        assert!(offset_of!(SendWr, invalidate_rkey) == 36);
        assert!(offset_of!(SendWr, remote_addr) == 40);
        assert!(offset_of!(SendWr, rkey) == 48);
        assert!(offset_of!(SendWr, mw) == 80);
        assert!(offset_of!(SendWr, mw_rkey) == 88);
        assert!(offset_of!(SendWr, bind_info) == 96);
        assert!(size_of::<RecvWr>() == 32);
        assert!(offset_of!(RecvWr, num_sge) == 24);
        assert!(size_of::<Wc>() == 48);
        assert!(offset_of!(Wc, status) == 8);
        assert!(offset_of!(Wc, opcode) == 12);
        assert!(offset_of!(Wc, byte_len) == 20);
        assert!(offset_of!(Wc, invalidated_rkey) == 24);
        assert!(offset_of!(Wc, wc_flags) == 36);
        assert!(offset_of!(Wc, dlid_path_bits) == 45);
    };
    const _: () = {
        assert!(size_of::<EventChannel>() == 4);
        assert!(offset_of!(CmId, channel) == 8);
        assert!(offset_of!(CmId, qp) == 24);
        assert!(offset_of!(CmId, source) == 32);
        assert!(offset_of!(CmId, destination) == 160);
        assert!(size_of::<ConnParam>() == 24);
        assert!(offset_of!(ConnParam, private_data_len) == 8);
        assert!(offset_of!(ConnParam, responder_resources) == 9);
        assert!(offset_of!(ConnParam, initiator_depth) == 10);
        assert!(offset_of!(ConnParam, rnr_retry_count) == 13);
        assert!(offset_of!(ConnParam, qp_num) == 16);
        assert!(size_of::<CmEvent>() == 80);
        assert!(offset_of!(CmEvent, event) == 16);
        assert!(offset_of!(CmEvent, status) == 20);
        assert!(offset_of!(CmEvent, conn) == 24);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_invalidation_has_a_key() {
        let key = |wc_flags| {
            let invalidated_rkey = 5;
            let wc = Wc {
                wc_flags,
                invalidated_rkey,
                ..Wc::default()
            };
            wc.invalidated_key()
        };
        assert_eq!(key(0), None);
        assert_eq!(key(WC_WITH_INV), Some(5));
        assert_eq!(key(1 | WC_WITH_INV_OF_RXE), Some(5));
        assert_eq!(key(WC_WITH_IMM), None);
        assert_eq!(key(WC_WITH_IMM | WC_WITH_INV_OF_RXE), None);
    }
}

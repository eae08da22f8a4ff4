//! The two C libraries, loaded at run time: the program also runs without them.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::sync::OnceLock;

use super::call_thread::CallThread;
use super::ffi;

/// The library versions that have the ABI of `ffi.rs`.
const CM_NAME: &str = "librdmacm.so.1";
const VERBS_NAME: &str = "libibverbs.so.1";

/// Reason why librdmacm or libibverbs, the libraries for RDMA devices, cannot be used.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// A library is missing or cannot be loaded.
    Library {
        /// File name of the library, for example `libibverbs.so.1`.
        name: String,
        /// The message of the dynamic loader.
        why: String,
    },
    /// The system refuses a thread for the provider: the error of the system.
    Thread(String),
    /// A library lacks a function, because it is a different or an old library.
    Function {
        /// File name of the library, for example `libibverbs.so.1`.
        name: String,
        /// Name of the missing function.
        function: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library { name, why } => write!(
                f,
                "cannot load {name} ({why}); SMB Direct on RDMA devices needs rdma-core's \
                 libraries (packages librdmacm1, libibverbs1 and ibverbs-providers, or rdma-core)"
            ),
            Self::Thread(why) => write!(f, "cannot start a thread for RDMA calls: {why}"),
            Self::Function { name, function } => write!(f, "{name} has no function {function}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Declares the table of functions and fills it, so that each name occurs once.
macro_rules! functions {
    ($($from:ident $symbol:ident as $name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of the libraries. Manual pages describe their contracts. The owners of the
        /// pointers wrap the calls: `channel.rs`, `device.rs`, `queue_pair/`.
        pub(super) struct Library {
            /// The thread that makes the calls of RDMA-CM, and opens devices.
            pub(super) calls: CallThread,
            /// The thread that posts to software devices. It is separate because calls of RDMA-CM
            /// may take long.
            pub(super) posts: CallThread,
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Library {
            fn fill(cm: &Loaded, verbs: &Loaded) -> Result<Self, LoadError> {
                let (calls, posts) = threads()?;
                Ok(Self {
                    calls,
                    posts,
                    $($name: {
                        let loaded = functions!(@from $from cm verbs);
                        // SAFETY: the symbol is a function of the C library with these arguments
                        // and this result, by the manual page and the headers of rdma-core.
                        unsafe { loaded.function(stringify!($symbol)) }?
                    },)*
                })
            }
        }
    };
    (@from cm $cm:ident $verbs:ident) => { $cm };
    (@from verbs $cm:ident $verbs:ident) => { $verbs };
}

functions! {
    cm rdma_create_event_channel as create_event_channel: fn() -> *mut ffi::EventChannel;
    cm rdma_destroy_event_channel as destroy_event_channel: fn(*mut ffi::EventChannel);
    cm rdma_create_id as create_id:
        fn(*mut ffi::EventChannel, *mut *mut ffi::CmId, *mut c_void, c_int) -> c_int;
    cm rdma_destroy_id as destroy_id: fn(*mut ffi::CmId) -> c_int;
    cm rdma_migrate_id as migrate_id: fn(*mut ffi::CmId, *mut ffi::EventChannel) -> c_int;
    cm rdma_set_option as set_option:
        fn(*mut ffi::CmId, c_int, c_int, *mut c_void, usize) -> c_int;
    cm rdma_bind_addr as bind_addr: fn(*mut ffi::CmId, *mut libc::sockaddr) -> c_int;
    cm rdma_listen as listen: fn(*mut ffi::CmId, c_int) -> c_int;
    cm rdma_resolve_addr as resolve_addr:
        fn(*mut ffi::CmId, *mut libc::sockaddr, *mut libc::sockaddr, c_int) -> c_int;
    cm rdma_resolve_route as resolve_route: fn(*mut ffi::CmId, c_int) -> c_int;
    cm rdma_create_qp as create_qp: fn(*mut ffi::CmId, *mut ffi::Pd, *mut ffi::QpInitAttr) -> c_int;
    cm rdma_destroy_qp as destroy_qp: fn(*mut ffi::CmId);
    cm rdma_connect as connect: fn(*mut ffi::CmId, *mut ffi::ConnParam) -> c_int;
    cm rdma_accept as accept: fn(*mut ffi::CmId, *mut ffi::ConnParam) -> c_int;
    cm rdma_reject as reject: fn(*mut ffi::CmId, *const c_void, u8) -> c_int;
    cm rdma_disconnect as disconnect: fn(*mut ffi::CmId) -> c_int;
    cm rdma_get_cm_event as get_cm_event:
        fn(*mut ffi::EventChannel, *mut *mut ffi::CmEvent) -> c_int;
    cm rdma_ack_cm_event as ack_cm_event: fn(*mut ffi::CmEvent) -> c_int;
    cm rdma_get_devices as get_devices: fn(*mut c_int) -> *mut *mut ffi::Context;
    cm rdma_free_devices as free_devices: fn(*mut *mut ffi::Context);
    verbs ibv_query_device as query_device: fn(*mut ffi::Context, *mut ffi::DeviceAttr) -> c_int;
    verbs ibv_alloc_pd as alloc_pd: fn(*mut ffi::Context) -> *mut ffi::Pd;
    verbs ibv_dealloc_pd as dealloc_pd: fn(*mut ffi::Pd) -> c_int;
    verbs ibv_reg_mr as reg_mr: fn(*mut ffi::Pd, *mut c_void, usize, c_int) -> *mut ffi::Mr;
    verbs ibv_dereg_mr as dereg_mr: fn(*mut ffi::Mr) -> c_int;
    verbs ibv_create_comp_channel as create_comp_channel:
        fn(*mut ffi::Context) -> *mut ffi::CompChannel;
    verbs ibv_destroy_comp_channel as destroy_comp_channel: fn(*mut ffi::CompChannel) -> c_int;
    verbs ibv_create_cq as create_cq:
        fn(*mut ffi::Context, c_int, *mut c_void, *mut ffi::CompChannel, c_int) -> *mut ffi::Cq;
    verbs ibv_destroy_cq as destroy_cq: fn(*mut ffi::Cq) -> c_int;
    verbs ibv_get_cq_event as get_cq_event:
        fn(*mut ffi::CompChannel, *mut *mut ffi::Cq, *mut *mut c_void) -> c_int;
    verbs ibv_ack_cq_events as ack_cq_events: fn(*mut ffi::Cq, u32);
    verbs ibv_wc_status_str as wc_status_str: fn(c_int) -> *const c_char;
}

impl Library {
    /// Loads the libraries once for the process. They are never unloaded, because device drivers
    /// leave threads and handlers behind.
    ///
    /// # Errors
    /// A library is missing or has the wrong version.
    pub(super) fn load() -> Result<&'static Self, LoadError> {
        static LIBRARY: OnceLock<Result<Library, LoadError>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| Self::open(CM_NAME, VERBS_NAME));
        library.as_ref().map_err(Clone::clone)
    }

    fn open(cm: &str, verbs: &str) -> Result<Self, LoadError> {
        let verbs = Loaded::open(verbs)?;
        let cm = Loaded::open(cm)?;
        Self::fill(&cm, &verbs)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Library")
    }
}

struct Loaded {
    name: String,
    library: &'static libloading::Library,
}

impl Loaded {
    fn open(name: &str) -> Result<Self, LoadError> {
        // SAFETY: the initializers of rdma-core's libraries require nothing from the caller; the
        // administrator is responsible for other libraries of the same name, as with any library.
        let loaded = unsafe { libloading::Library::new(name) };
        let library = loaded.map_err(|error| LoadError::Library {
            name: name.to_owned(),
            why: reason(&error),
        })?;
        Ok(Self {
            name: name.to_owned(),
            library: Box::leak(Box::new(library)),
        })
    }

    /// # Safety
    /// `T` is a pointer to a function with the arguments and the result of that symbol.
    unsafe fn function<T: Copy>(&self, function: &'static str) -> Result<T, LoadError> {
        // SAFETY: the caller guarantees the type.
        let symbol = unsafe { self.library.get::<T>(function) };
        symbol
            .map(|symbol| *symbol)
            .map_err(|_| LoadError::Function {
                name: self.name.clone(),
                function,
            })
    }
}

/// Starts both threads. The first one starts the second one, so both have the same credentials.
fn threads() -> Result<(CallThread, CallThread), LoadError> {
    let cannot = |error: std::io::Error| LoadError::Thread(error.to_string());
    let calls = CallThread::start("rdma-calls").map_err(cannot)?;
    let posts = calls
        .run(|| CallThread::start("rdma-posts"))
        .map_err(cannot)?;
    Ok((calls, posts))
}

/// The loader's message, if it has one.
fn reason(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        let error = Library::open("librdmacm-is-not-here.so.1", "libc.so.6");
        let text = error.expect_err("there is no such file").to_string();
        assert!(
            text.starts_with("cannot load librdmacm-is-not-here.so.1 ("),
            "{text}"
        );
        assert!(text.contains("rdma-core"), "{text}");
    }

    #[test]
    fn a_library_without_a_function_is_named_with_it() {
        let error = Library::open("libc.so.6", "libc.so.6").expect_err("that is the C library");
        assert_eq!(
            error.to_string(),
            "libc.so.6 has no function rdma_create_event_channel"
        );
    }
}

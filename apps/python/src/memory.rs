//! Memory of Python objects as memory of operations, without a copy.
//!
//! The buffer protocol is in the stable ABI since Python 3.11, so PyO3 has no interface to it for
//! older versions. Its functions and the layout of `Py_buffer` are the same in every version from
//! 3.9 on (<https://docs.python.org/3/c-api/buffer.html>), so this module declares them itself.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smbeam_client::{Region, Source};

/// From this length on the kernel is asked for huge pages: fewer page faults for new memory.
const HUGE: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// From this length on the pages of new memory are requested before the copy.
const POPULATED: usize = 64 << 10;
const PAGE: usize = 4 << 10;

const SIMPLE: c_int = 0;
const WRITABLE: c_int = 1;

/// `Py_buffer`.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
}

/// An exported buffer of an object. The interpreter keeps the memory at its address until the
/// export ends.
struct Export(Option<Box<Ended>>);

/// An export, and the link to the next one that has ended.
struct Ended {
    view: View,
    next: *mut Ended,
}

// SAFETY: the view is only read and released by threads that are attached to the interpreter.
unsafe impl Send for Export {}
// SAFETY: a shared reference gives no access.
unsafe impl Sync for Export {}

/// Exports that operations have dropped, to be released by the next thread that is attached to the
/// interpreter. I/O threads never wait for the interpreter.
static ENDED: AtomicPtr<Ended> = AtomicPtr::new(ptr::null_mut());

impl Export {
    fn of(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut ended = Box::new(Ended {
            view: View {
                buf: ptr::null_mut(),
                obj: ptr::null_mut(),
                len: 0,
                itemsize: 0,
                readonly: 0,
                ndim: 0,
                format: ptr::null_mut(),
                shape: ptr::null_mut(),
                strides: ptr::null_mut(),
                suboffsets: ptr::null_mut(),
                internal: ptr::null_mut(),
            },
            next: ptr::null_mut(),
        });
        // SAFETY: the thread is attached, the object is alive, and the view has its final address.
        let result = unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut ended.view, flags) };
        if result != 0 {
            return Err(PyErr::take(object.py())
                .unwrap_or_else(|| PyBufferError::new_err("the object has no buffer")));
        }
        Ok(Self(Some(ended)))
    }

    fn bytes(&self) -> NonNull<[u8]> {
        let view = &self.0.as_ref().expect("there until it is dropped").view;
        let start = NonNull::new(view.buf.cast::<u8>()).unwrap_or(NonNull::dangling());
        NonNull::slice_from_raw_parts(start, view.len.unsigned_abs())
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let Some(ended) = self.0.take() else {
            return;
        };
        let ended = Box::into_raw(ended);
        let mut head = ENDED.load(Ordering::Relaxed);
        loop {
            // SAFETY: the box was leaked above, and only this thread knows it until the exchange.
            unsafe { (*ended).next = head };
            match ENDED.compare_exchange_weak(head, ended, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }
}

/// Releases the exports of finished operations.
pub(crate) fn release_ended(_py: Python<'_>) {
    if ENDED.load(Ordering::Relaxed).is_null() {
        return;
    }
    let mut next = ENDED.swap(ptr::null_mut(), Ordering::Acquire);
    while !next.is_null() {
        // SAFETY: the list owns its boxes, and this thread has taken the whole list.
        let mut ended = unsafe { Box::from_raw(next) };
        next = ended.next;
        // SAFETY: the view was filled by `PyObject_GetBuffer`, and the thread is attached.
        unsafe { PyBuffer_Release(&raw mut ended.view) };
    }
}

/// The writable memory of an object with the buffer protocol, such as a `bytearray`, a
/// `memoryview` or an array. The object must not be used by other threads until the operation has
/// finished.
pub(crate) fn writable(object: &Bound<'_, PyAny>) -> PyResult<Region> {
    let export = Export::of(object, WRITABLE)?;
    // SAFETY: the export keeps the memory until it is dropped. That nothing else uses the memory
    // meanwhile is the rule for callers of a function that fills a buffer, as in `readinto`.
    Ok(unsafe { Region::of_foreign(export.bytes(), Box::new(export)) })
}

/// The memory of an object with the buffer protocol, for an operation that reads it.
pub(crate) fn readable(object: &Bound<'_, PyAny>) -> PyResult<Source> {
    let export = Export::of(object, SIMPLE)?;
    // SAFETY: the export keeps the memory until it is dropped. That nothing writes it meanwhile is
    // the rule for callers of a function that sends a buffer, as in `write`.
    Ok(unsafe { Source::of_foreign(export.bytes(), Box::new(export)) })
}

/// A new object of `bytes` with `len` bytes, and its memory.
pub(crate) fn new_bytes(py: Python<'_>, len: usize) -> PyResult<(Py<PyBytes>, Region)> {
    let (bytes, start) = allocated(py, len)?;
    if len >= HUGE {
        ask_for_huge_pages(start, len);
    }
    let bytes = bytes.unbind();
    let memory = NonNull::slice_from_raw_parts(start, len);
    let owner = Box::new(bytes.clone_ref(py));
    // SAFETY: the reference keeps the object. Its memory never moves. Until the operation has
    // finished, no other part of the program has the object.
    Ok((bytes, unsafe { Region::of_foreign(memory, owner) }))
}

/// A new object of `bytes` with `len` bytes of any value, and the address of the first.
fn allocated(py: Python<'_>, len: usize) -> PyResult<(Bound<'_, PyBytes>, NonNull<u8>)> {
    let size = ffi::Py_ssize_t::try_from(len)?;
    // SAFETY: the thread is attached. Without a source the function only allocates.
    let object = unsafe { ffi::PyBytes_FromStringAndSize(ptr::null(), size) };
    // SAFETY: the function returns a new reference or null with an exception set.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, object) }?;
    let bytes = object.cast_into::<PyBytes>()?;
    // SAFETY: the object is of type `bytes`.
    let start = unsafe { ffi::PyBytes_AsString(bytes.as_ptr()) };
    let start = NonNull::new(start.cast::<u8>()).expect("an object of bytes has memory");
    Ok((bytes, start))
}

fn ask_for_huge_pages(start: NonNull<u8>, len: usize) {
    let offset = start.as_ptr().align_offset(HUGE_PAGE);
    let Some(whole) = len.checked_sub(offset) else {
        return;
    };
    let first = start.as_ptr().wrapping_add(offset).cast();
    let whole = whole / HUGE_PAGE * HUGE_PAGE;
    // An error means that the kernel has no huge pages.
    // SAFETY: the pages are inside of the object's memory, and the advice changes no bytes.
    let _ = unsafe { libc::madvise(first, whole, libc::MADV_HUGEPAGE) };
}

/// The first `len` bytes of an object that [`new_bytes`] made.
pub(crate) fn shortened(py: Python<'_>, bytes: Py<PyBytes>, len: usize) -> PyResult<Py<PyAny>> {
    let whole = bytes.bind(py).as_bytes();
    if whole.len() == len {
        return Ok(bytes.into_any());
    }
    Ok(PyBytes::new(py, &whole[..len.min(whole.len())])
        .into_any()
        .unbind())
}

/// The bytes of a region as an object.
pub(crate) fn bytes(py: Python<'_>, region: &Region) -> PyResult<Py<PyAny>> {
    if region.len() < POPULATED {
        return Ok(PyBytes::new(py, region).into_any().unbind());
    }
    let (bytes, start) = allocated(py, region.len())?;
    populate(start, region.len());
    // SAFETY: the object has as many bytes as the region, and no other part of the program has it.
    unsafe { ptr::copy_nonoverlapping(region.as_ptr(), start.as_ptr(), region.len()) };
    Ok(bytes.into_any().unbind())
}

/// Asks the kernel for the pages of new memory with one call. Page faults of single pages cost more
/// than the copy into them.
fn populate(start: NonNull<u8>, len: usize) {
    let start = start.as_ptr();
    let first = start.addr() / PAGE * PAGE;
    let end = (start.addr() + len).next_multiple_of(PAGE);
    // An error means that the kernel is older than 5.14, or has larger pages: they come by faults.
    // SAFETY: each page has bytes of the object, so it is mapped; the advice changes no bytes.
    let _ = unsafe {
        libc::madvise(
            start.with_addr(first).cast(),
            end - first,
            libc::MADV_POPULATE_WRITE,
        )
    };
}

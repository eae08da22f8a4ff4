//! Mapped files, for copies that the kernel makes.
//!
//! This process never reads the mapped bytes. Other processes may change the file at any time, and
//! pages past its end do not exist. A copy by the kernel stops there with an error; an access by
//! the processor would end the process.
//!
//! Mappings are cached, because a new mapping for each copy costs a third of the copy, mostly for
//! page faults. But a mapped file is in use: a removed file keeps its blocks, and its file system
//! stays mounted. So unused mappings end soon.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::file_range::FileRange;
use crate::sys;

/// Length of a window in bytes. A window starts at a multiple of it. A window costs address space,
/// and one page of page tables for each 2 MiB that were read. Unmapping it takes a quarter of a
/// millisecond.
const WINDOW_BYTES: usize = 64 << 20;
/// Minimum length in bytes of a range of a file that [`Views::find`] maps. For a shorter range a
/// copy is faster.
pub const VIEW_BYTES_MIN: usize = 64 << 10;
/// Smallest file in bytes that is mapped for a request that reads all of it: for smaller files the
/// mapping costs more than the copy.
const MAPPED_BYTES_MIN: u64 = 512 << 10;
/// Time after the last request after which an unused window is unmapped.
const KEEP: Duration = Duration::from_secs(1);

/// A cache of mapped parts of files (windows of 64 MiB), which let the kernel send file data
/// without a copy in the process. The key is device and inode number: while a file is mapped, no
/// other file has its inode number. Files on overlay file systems have no windows: a first write
/// replaces the file under the same inode number.
#[derive(Debug)]
pub struct Views {
    /// Sorted by last use, the most recent one last.
    windows: Vec<Rc<Window>>,
    /// Limit of windows, including those that views refer to. The number of mappings of a process
    /// is limited.
    most: usize,
}

/// A mapping of a part of a file. It may extend past the end of the file. Dropping the value unmaps
/// it.
#[derive(Debug)]
struct Window {
    start: *mut libc::c_void,
    location: Location,
    file: Arc<fs::File>,
    last_use: Cell<Instant>,
}

/// Device, inode and offset of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Location {
    device: libc::dev_t,
    inode: libc::ino_t,
    /// Bytes from the start of the file.
    offset: u64,
}

/// A mapped range of a file that the kernel can copy from, for example when a socket sends it. The
/// mapping exists until the view is dropped.
#[derive(Clone)]
pub struct View {
    window: Rc<Window>,
    skip: usize,
    bytes: usize,
}

/// Reason why [`Views::find`] returns no view of a range. The caller reads the range instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoView {
    /// The range is too small, not in memory, or not inside the file.
    Absent,
    /// The kernel does not report page residency to the user of this thread.
    Hidden,
}

impl Views {
    /// Makes an empty cache of at most `most` windows. A window is a mapped range of 64 MiB of one
    /// file.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            windows: Vec::new(),
            most,
        }
    }

    /// Returns a view of the `bytes` bytes from `offset` of a file, and maps the file if it is not
    /// mapped. The view is inside the current file and inside one window (64 MiB of the file at a
    /// multiple of 64 MiB), and is in memory, so a copy does not wait for a disk. Files below 512
    /// KiB have no view for a request of the whole file.
    ///
    /// # Errors
    /// The reason why the range has no view. The caller reads the range instead.
    pub fn find(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<View, NoView> {
        let skip = offset % WINDOW_BYTES as u64;
        let (start, skip) = (offset - skip, skip as usize);
        let status = sys::status(file).map_err(|_| NoView::Absent)?;
        let size = u64::try_from(status.st_size).map_err(|_| NoView::Absent)?;
        let end = offset.checked_add(bytes as u64);
        let is_inside = bytes > 0 && end.is_some_and(|end| end <= size);
        let is_worth_it = size >= MAPPED_BYTES_MIN || size > bytes as u64;
        if !is_inside || !is_worth_it || bytes > WINDOW_BYTES - skip {
            return Err(NoView::Absent);
        }
        if !reports_residency(file, &status) {
            return Err(NoView::Hidden);
        }
        let location = Location {
            device: status.st_dev,
            inode: status.st_ino,
            offset: start,
        };
        let window = self.window(file, location).ok_or(NoView::Absent)?;
        let view = View {
            window: Rc::clone(window),
            skip,
            bytes,
        };
        match view.is_in_memory(1) && view.is_in_memory(bytes) {
            true => Ok(view),
            false => Err(NoView::Absent),
        }
    }

    fn window(&mut self, file: BorrowedFd<'_>, location: Location) -> Option<&Rc<Window>> {
        match self.windows.iter().position(|it| it.location == location) {
            Some(index) => self.windows[index..].rotate_left(1),
            None => {
                if self.windows.len() >= self.most {
                    let unused = self.windows.iter().position(is_unused)?;
                    self.windows.remove(unused);
                }
                if sys::is_layered(file) {
                    return None;
                }
                let window = Window::new(file, location).ok()?;
                self.windows.push(Rc::new(window));
            }
        }
        let window = self.windows.last()?;
        window.last_use.set(Instant::now());
        Some(window)
    }

    /// Unmaps all windows without a [`View`], so that their file systems can be unmounted.
    pub fn unmap_idle(&mut self) {
        self.windows.retain(|window| !is_unused(window));
    }

    /// Unmaps the windows without a [`View`] that no call of [`find`](Self::find) has used for one
    /// second. Returns whether windows are left.
    pub fn forget_unused(&mut self) -> bool {
        let is_fresh = |window: &Window| window.last_use.get().elapsed() <= KEEP;
        (self.windows).retain(|window| !is_unused(window) || is_fresh(window));
        !self.windows.is_empty()
    }
}

/// Whether no view refers to the window.
fn is_unused(window: &Rc<Window>) -> bool {
    Rc::strong_count(window) == 1
}

impl Window {
    fn new(file: BorrowedFd<'_>, location: Location) -> io::Result<Self> {
        let offset = libc::off_t::try_from(location.offset).map_err(io::Error::other)?;
        let owned = file.try_clone_to_owned()?;
        let (rights, kind, fd) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: the kernel chooses an unused address for the new mapping.
        let start = unsafe { libc::mmap(ptr::null_mut(), WINDOW_BYTES, rights, kind, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start,
            location,
            file: Arc::new(owned.into()),
            last_use: Cell::new(Instant::now()),
        })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped it and only this unmaps it, once; all views share the window and
        // have ended.
        unsafe { libc::munmap(self.start, WINDOW_BYTES) };
    }
}

impl View {
    /// Returns the length of the range in bytes.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns the address and length of the mapped range, for system calls that make the kernel
    /// read it. The process itself must not read the bytes, since other processes change and
    /// truncate the file.
    #[must_use]
    pub fn range(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.window.start.wrapping_byte_add(self.skip),
            iov_len: self.bytes,
        }
    }

    /// The same bytes as a range of the file, for reading.
    pub(crate) fn file_range(&self) -> FileRange {
        let Window { file, location, .. } = &*self.window;
        FileRange::new(
            Arc::clone(file),
            location.offset + self.skip as u64,
            self.bytes,
        )
    }

    /// Whether the first `bytes` bytes are in memory.
    fn is_in_memory(&self, bytes: usize) -> bool {
        let page = page_bytes();
        let start = self.skip - self.skip % page;
        let bytes = (self.skip + bytes).next_multiple_of(page) - start;
        let address = self.window.start.wrapping_byte_add(start);
        let mut pages = vec![0_u8; bytes / page];
        // SAFETY: the range is mapped, and the vector has one byte for each of its pages.
        let result = unsafe { libc::mincore(address, bytes, pages.as_mut_ptr()) };
        result == 0 && pages.iter().all(|page| page & 1 != 0)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} bytes)", self.bytes)
    }
}

/// Whether the kernel reports page residency of a file to this user. For files that the user
/// neither owns nor may write, mincore(2) reports all pages as resident.
fn reports_residency(file: BorrowedFd<'_>, status: &libc::stat) -> bool {
    sys::user() == status.st_uid || sys::may_write(file)
}

fn page_bytes() -> usize {
    // SAFETY: takes no memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has pages")
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Makes all windows look unused for a while.
    fn age(views: &Views) {
        for window in &views.windows {
            let past = Instant::now().checked_sub(2 * KEEP);
            window
                .last_use
                .set(past.expect("the clock has run for longer"));
        }
    }

    /// Makes all windows look just used, however slow the machine is.
    fn renew(views: &Views) {
        for window in &views.windows {
            window.last_use.set(Instant::now() + 60 * KEEP);
        }
    }

    /// As [`renew`], for the window that was used last.
    fn renew_newest(views: &Views) {
        let newest = views.windows.iter().max_by_key(|it| it.last_use.get());
        let newest = newest.expect("a window");
        newest.last_use.set(Instant::now() + 60 * KEEP);
    }

    fn file(bytes: u64) -> fs::File {
        let file = tempfile::tempfile().expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 5000], bytes - 5000)
            .expect("disk space");
        file
    }

    #[test]
    fn windows_are_reused_and_limited() {
        const MOST: usize = 8;
        let mut views = Views::new(MOST);
        let files: Vec<_> = (0..MOST + 2).map(|_| file(5000)).collect();
        for file in files.iter().chain(&files[MOST..]) {
            assert!(views.find(file.as_fd(), 100, 4900).is_ok());
            assert!(views.windows.len() <= MOST);
        }
        let last = files[MOST + 1].as_fd();
        let start = views.windows.last().expect("some").start;
        assert!(views.find(files[5].as_fd(), 0, 1).is_ok());
        // Another descriptor of the same file finds the same window.
        let again = last.try_clone_to_owned().expect("a descriptor");
        let view = views.find(again.as_fd(), 0, 4999).expect("a view");
        assert_eq!(view.window.start, start);
        renew(&views);
        assert!(views.forget_unused());
        assert_eq!(views.windows.len(), MOST);
        age(&views);
        assert!(views.forget_unused(), "a view is left");
        assert_eq!(views.windows.len(), 1);
        drop(view);
        assert!(!views.forget_unused());
        assert!(views.windows.is_empty());
    }

    #[test]
    fn an_unused_window_ends_while_others_are_used() {
        let mut views = Views::new(8);
        let [removed, read] = [file(5000), file(5000)];
        assert!(views.find(removed.as_fd(), 0, 4999).is_ok());
        assert!(views.find(read.as_fd(), 0, 4999).is_ok());
        age(&views);
        assert!(views.find(read.as_fd(), 0, 4999).is_ok());
        renew_newest(&views);
        assert!(views.forget_unused());
        assert_eq!(views.windows.len(), 1);
    }

    #[test]
    fn idle_windows_end_at_once() {
        let mut views = Views::new(8);
        let [read, idle] = [file(5000), file(5000)];
        let view = views.find(read.as_fd(), 0, 4999).expect("a view");
        assert!(views.find(idle.as_fd(), 0, 4999).is_ok());
        views.unmap_idle();
        assert_eq!(views.windows.len(), 1);
        drop(view);
        views.unmap_idle();
        assert!(views.windows.is_empty());
    }

    #[test]
    fn windows_in_use_are_not_replaced() {
        let mut views = Views::new(2);
        let files: Vec<_> = (0..3).map(|_| file(5000)).collect();
        let find = |views: &mut Views, file: usize| views.find(files[file].as_fd(), 1, 4000);
        let held = [find(&mut views, 0), find(&mut views, 1)];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(find(&mut views, 2).err(), Some(NoView::Absent));
        assert!(find(&mut views, 1).is_ok(), "the window exists already");
        drop(held);
        assert!(find(&mut views, 2).is_ok());
    }

    /// A user without permission gets no page residency, so no view.
    #[test]
    fn files_of_other_users_are_not_found() {
        const UNPRIVILEGED: libc::uid_t = 65_534;
        if sys::user() != 0 {
            return;
        }
        let file = file(5000);
        let drop_privileges = || {
            // SAFETY: takes no memory; changes only this thread, which ends.
            unsafe { libc::syscall(libc::SYS_setresuid, -1, UNPRIVILEGED, -1) }
        };
        let is_found = || Views::new(8).find(file.as_fd(), 0, 4999).is_ok();
        assert!(is_found());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(drop_privileges(), 0);
                assert!(!is_found());
            });
        });
        let permissions = fs::Permissions::from_mode(0o666);
        file.set_permissions(permissions).expect("the owner may");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(drop_privileges(), 0);
                assert!(is_found());
            });
        });
    }

    /// The first write to a file on overlayfs replaces the file, but a mapping keeps the old one.
    #[test]
    fn a_file_on_overlayfs_is_not_mapped() {
        let scratch = tempfile::tempdir().expect("a directory");
        let root = scratch.path();
        let lay_out = || -> io::Result<()> {
            mount("tmpfs", root, "")?;
            for directory in ["lower", "upper", "work", "merged"] {
                fs::create_dir(root.join(directory))?;
            }
            fs::write(root.join("lower/file"), vec![7; MAPPED_BYTES_MIN as usize])?;
            let layer = |name: &str| format!("{name}dir={}/{name}", root.display());
            let layers = ["lower", "upper", "work"].map(layer).join(",");
            mount("overlay", &root.join("merged"), &layers)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Without permission to mount, or without overlayfs, the test cannot run.
                if !has_own_mounts() || lay_out().is_err() {
                    return;
                }
                let file =
                    fs::File::open(root.join("merged/file")).expect("the file of the lower layer");
                let found = Views::new(8).find(file.as_fd(), 0, 5000);
                assert_eq!(found.err(), Some(NoView::Absent));
            });
        });
    }

    /// Gives this thread a private mount namespace, which ends with it.
    fn has_own_mounts() -> bool {
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: takes no memory and changes only this thread.
        let is_apart = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
        // SAFETY: the path is a string with a zero byte at the end, and all other pointers are
        // null.
        is_apart
            && unsafe { libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), flags, ptr::null()) }
                == 0
    }

    fn mount(kind: &str, target: &std::path::Path, data: &str) -> io::Result<()> {
        let text = |text: &str| std::ffi::CString::new(text).map_err(io::Error::other);
        let target = text(&target.display().to_string())?;
        let (kind, data) = (text(kind)?, text(data)?);
        // SAFETY: all pointers are strings with a zero byte at the end, which outlive the call.
        let result = unsafe {
            libc::mount(
                kind.as_ptr(),
                target.as_ptr(),
                kind.as_ptr(),
                0,
                data.as_ptr().cast(),
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[test]
    fn a_small_file_is_not_mapped_for_one_request() {
        let is_found = |size: usize, bytes: usize| {
            let file = file(size as u64);
            Views::new(8).find(file.as_fd(), 0, bytes).is_ok()
        };
        let least = MAPPED_BYTES_MIN as usize;
        assert!(!is_found(5000, 5000) && is_found(5000, 4999));
        assert!(!is_found(least, least + 1));
        let whole = vec![7; least];
        let file = tempfile::tempfile().expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, &whole, 0).expect("disk space");
        assert!(Views::new(8).find(file.as_fd(), 0, least).is_ok());
    }

    #[test]
    fn a_range_across_windows_is_not_found() {
        let mut views = Views::new(8);
        let border = WINDOW_BYTES as u64;
        let file = file(border + 2000);
        let mut is_found = |offset, bytes| views.find(file.as_fd(), offset, bytes).is_ok();
        assert!(is_found(border - 1000, 1000) && is_found(border, 2000));
        assert!(!is_found(border - 1000, 1001) && !is_found(border, 2001));
        assert!(!is_found(0, 0) && !is_found(u64::MAX, 1));
        // A hole is not in memory.
        assert!(!is_found(0, 1));
    }
}

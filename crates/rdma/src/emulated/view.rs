//! Files as memory, for copies that the kernel makes.
//!
//! Nobody here looks at the bytes: others may change the file at any time, and where it was cut
//! there is nothing. The kernel's copy stops there, where a processor's would end the process.
//!
//! Mappings are kept, because making one for each copy costs a third of the copy, most of it for
//! pages that are found one by one. A file that is mapped is in use: one that was removed keeps its
//! blocks, and its file system stays mounted. So what nobody asks for is forgotten soon.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::{Duration, Instant};

/// Bytes of a window, which begins at a multiple of that. It costs addresses only, and a page of
/// the kernel's for each 2 MiB that were read.
const WINDOW_BYTES: usize = 1 << 30;
/// Windows of one queue pair.
const WINDOWS_MAX: usize = 8;
/// How long windows are kept that nobody asks for; then the next message of the peer ends them.
const KEEP: Duration = Duration::from_secs(1);

/// Windows into files, by who they are: no other file has the number of one that is mapped.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// The one that was used last comes last.
    windows: Vec<Window>,
    last_use: Option<Instant>,
}

/// A mapping of a part of a file, or of what the file may have there one day. It ends with the
/// value.
#[derive(Debug)]
struct Window {
    start: *mut libc::c_void,
    place: Place,
}

/// Which part of which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    device: libc::dev_t,
    inode: libc::ino_t,
    /// In bytes, from the start of the file.
    offset: u64,
}

/// A range of a window.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    window: &'a Window,
    skip: usize,
    bytes: usize,
}

impl Views {
    /// A range of a file that has bytes, lies in the file as it is now, in one window, and in
    /// memory: nobody waits for a disk.
    pub(crate) fn find(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Option<View<'_>> {
        let skip = offset % WINDOW_BYTES as u64;
        let (start, skip) = (offset - skip, skip as usize);
        let status = status(file)?;
        let end = offset.checked_add(bytes as u64)?;
        let is_there = end <= u64::try_from(status.st_size).ok()?;
        if bytes == 0 || !is_there || bytes > WINDOW_BYTES - skip {
            return None;
        }
        let place = Place {
            device: status.st_dev,
            inode: status.st_ino,
            offset: start,
        };
        let window = self.window(file, place)?;
        let view = View {
            window,
            skip,
            bytes,
        };
        view.is_in_memory().then_some(view)
    }

    fn window(&mut self, file: BorrowedFd<'_>, place: Place) -> Option<&Window> {
        self.last_use = Some(Instant::now());
        match self.windows.iter().position(|it| it.place == place) {
            Some(index) => self.windows[index..].rotate_left(1),
            None => {
                let window = Window::new(file, place).ok()?;
                if self.windows.len() == WINDOWS_MAX {
                    self.windows.remove(0);
                }
                self.windows.push(window);
            }
        }
        self.windows.last()
    }

    /// Ends all windows, when nobody has asked for one lately.
    pub(crate) fn forget_unused(&mut self) {
        if self.last_use.is_some_and(|last| last.elapsed() > KEEP) {
            self.last_use = None;
            self.windows.clear();
        }
    }
}

impl Window {
    fn new(file: BorrowedFd<'_>, place: Place) -> io::Result<Self> {
        let offset = libc::off_t::try_from(place.offset).map_err(io::Error::other)?;
        let (rights, kind, fd) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: the kernel chooses an address where nothing is.
        let start = unsafe { libc::mmap(ptr::null_mut(), WINDOW_BYTES, rights, kind, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start, place })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, unmapped once; what refers to it borrows it.
        unsafe { libc::munmap(self.start, WINDOW_BYTES) };
    }
}

impl View<'_> {
    /// Of files that this process may neither write nor own the kernel says so always. mincore(2)
    fn is_in_memory(&self) -> bool {
        let page = page_bytes();
        let start = self.skip - self.skip % page;
        let bytes = (self.skip + self.bytes).next_multiple_of(page) - start;
        let address = self.window.start.wrapping_byte_add(start);
        let mut pages = vec![0_u8; bytes / page];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let result = unsafe { libc::mincore(address, bytes, pages.as_mut_ptr()) };
        result == 0 && pages.iter().all(|page| page & 1 != 0)
    }

    /// The range, for calls that have the kernel read it.
    pub(crate) fn range(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.window.start.wrapping_byte_add(self.skip),
            iov_len: self.bytes,
        }
    }
}

fn status(file: BorrowedFd<'_>) -> Option<libc::stat> {
    // SAFETY: the structure is plain integers, for which zeros are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer describes a live local.
    let result = unsafe { libc::fstat(file.as_raw_fd(), &raw mut status) };
    (result == 0).then_some(status)
}

fn page_bytes() -> usize {
    // SAFETY: takes no memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has pages")
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    fn file(bytes: u64) -> std::fs::File {
        let file = tempfile::tempfile().expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 5000], bytes - 5000).expect("room");
        file
    }

    #[test]
    fn windows_are_found_again_and_do_not_become_many() {
        let mut views = Views::default();
        let files: Vec<_> = (0..WINDOWS_MAX + 2).map(|_| file(5000)).collect();
        for file in files.iter().chain(&files[WINDOWS_MAX..]) {
            assert!(views.find(file.as_fd(), 100, 4900).is_some());
            assert!(views.windows.len() <= WINDOWS_MAX);
        }
        let last = files[WINDOWS_MAX + 1].as_fd();
        let start = views.windows.last().expect("some").start;
        assert!(views.find(files[5].as_fd(), 0, 1).is_some());
        // Through another descriptor, too.
        let again = last.try_clone_to_owned().expect("a descriptor");
        let view = views.find(again.as_fd(), 0, 5000).expect("it is there");
        assert_eq!(view.window.start, start);
        views.forget_unused();
        assert_eq!(views.windows.len(), WINDOWS_MAX);
        views.last_use = Instant::now().checked_sub(2 * KEEP);
        views.forget_unused();
        assert!(views.windows.is_empty());
    }

    #[test]
    fn a_range_over_the_border_of_windows_is_not_found() {
        let mut views = Views::default();
        let border = WINDOW_BYTES as u64;
        let file = file(border + 2000);
        let mut is_found = |offset, bytes| views.find(file.as_fd(), offset, bytes).is_some();
        assert!(is_found(border - 1000, 1000) && is_found(border, 2000));
        assert!(!is_found(border - 1000, 1001) && !is_found(border, 2001));
        assert!(!is_found(0, 0) && !is_found(u64::MAX, 1));
        // A hole is not in memory.
        assert!(!is_found(0, 1));
    }
}

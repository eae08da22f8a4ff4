//! Files as memory, for copies that the kernel makes.
//!
//! Nobody here looks at the bytes: others may change the file at any time, and where it was cut
//! there is nothing. The kernel's copy stops there, where a processor's would end the process.
//!
//! Mappings are kept, because making one for each copy costs a third of the copy, most of it for
//! pages that are found one by one. A file that is mapped is in use: one that was removed keeps its
//! blocks, and its file system stays mounted. So what nobody asks for is forgotten soon.

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

/// Bytes of a window, which begins at a multiple of that. It costs addresses only, and a page of
/// the kernel's for each 2 MiB that were read. To end it takes a quarter of a millisecond.
const WINDOW_BYTES: usize = 64 << 20;
/// Bytes of a range from which on finding it costs less than copying it.
pub const VIEW_BYTES_MIN: usize = 64 << 10;
/// Bytes of a file from which on it is mapped for a request that takes all of it: below that a
/// mapping costs more than the copy.
const MAPPED_BYTES_MIN: u64 = 512 << 10;
/// How long windows are kept that nobody asks for.
const KEEP: Duration = Duration::from_secs(1);

/// Windows into files, by who they are: no other file has the number of one that is mapped. There
/// are none of file systems in layers, where a file that is written to becomes another one under
/// its number.
#[derive(Debug)]
pub struct Views {
    /// The one that was used last comes last.
    windows: Vec<Rc<Window>>,
    /// Windows at most, with those that views refer to: a process has so many mappings and no more.
    most: usize,
}

/// A mapping of a part of a file, or of what the file may have there one day. It ends with the
/// value.
#[derive(Debug)]
struct Window {
    start: *mut libc::c_void,
    place: Place,
    file: Arc<fs::File>,
    last_use: Cell<Instant>,
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
#[derive(Clone)]
pub struct View {
    window: Rc<Window>,
    skip: usize,
    bytes: usize,
}

/// Why there is no view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoView {
    /// It is not worth one, not in memory, or not in the file.
    NotThere,
    /// The kernel does not tell whoever this thread acts for.
    NotTold,
}

impl Views {
    /// So many windows at most.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            windows: Vec::new(),
            most,
        }
    }

    /// A range of a file that has bytes, lies in the file as it is now, in one window, and in
    /// memory: nobody waits for a disk. None of a small file that is all asked for.
    pub fn find(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<View, NoView> {
        let skip = offset % WINDOW_BYTES as u64;
        let (start, skip) = (offset - skip, skip as usize);
        let status = sys::status(file).map_err(|_| NoView::NotThere)?;
        let size = u64::try_from(status.st_size).map_err(|_| NoView::NotThere)?;
        let end = offset.checked_add(bytes as u64);
        let is_there = bytes > 0 && end.is_some_and(|end| end <= size);
        let is_worth_it = size >= MAPPED_BYTES_MIN || size > bytes as u64;
        if !is_there || !is_worth_it || bytes > WINDOW_BYTES - skip {
            return Err(NoView::NotThere);
        }
        if !may_ask(file, &status) {
            return Err(NoView::NotTold);
        }
        let place = Place {
            device: status.st_dev,
            inode: status.st_ino,
            offset: start,
        };
        let window = self.window(file, place).ok_or(NoView::NotThere)?;
        let view = View {
            window: Rc::clone(window),
            skip,
            bytes,
        };
        match view.is_in_memory(1) && view.is_in_memory(bytes) {
            true => Ok(view),
            false => Err(NoView::NotThere),
        }
    }

    fn window(&mut self, file: BorrowedFd<'_>, place: Place) -> Option<&Rc<Window>> {
        match self.windows.iter().position(|it| it.place == place) {
            Some(index) => self.windows[index..].rotate_left(1),
            None => {
                if self.windows.len() >= self.most {
                    let unused = self.windows.iter().position(is_unused)?;
                    self.windows.remove(unused);
                }
                if sys::is_layered(file) {
                    return None;
                }
                let window = Window::new(file, place).ok()?;
                self.windows.push(Rc::new(window));
            }
        }
        let window = self.windows.last()?;
        window.last_use.set(Instant::now());
        Some(window)
    }

    /// Ends the windows that no view refers to and nobody has asked for lately. Tells whether there
    /// are any still.
    pub fn forget_unused(&mut self) -> bool {
        let is_fresh = |window: &Window| window.last_use.get().elapsed() <= KEEP;
        (self.windows).retain(|window| !is_unused(window) || is_fresh(window));
        !self.windows.is_empty()
    }
}

/// Whether no view refers to it.
fn is_unused(window: &Rc<Window>) -> bool {
    Rc::strong_count(window) == 1
}

impl Window {
    fn new(file: BorrowedFd<'_>, place: Place) -> io::Result<Self> {
        let offset = libc::off_t::try_from(place.offset).map_err(io::Error::other)?;
        let owned = file.try_clone_to_owned()?;
        let (rights, kind, fd) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: the kernel chooses an address where nothing is.
        let start = unsafe { libc::mmap(ptr::null_mut(), WINDOW_BYTES, rights, kind, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start,
            place,
            file: Arc::new(owned.into()),
            last_use: Cell::new(Instant::now()),
        })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, unmapped once; what refers to it shares it.
        unsafe { libc::munmap(self.start, WINDOW_BYTES) };
    }
}

impl View {
    /// Bytes of it.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The range, for calls that have the kernel read it. Nobody else may: others change and cut
    /// the file.
    #[must_use]
    pub fn range(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.window.start.wrapping_byte_add(self.skip),
            iov_len: self.bytes,
        }
    }

    /// The same bytes, to be read.
    pub(crate) fn file_range(&self) -> FileRange {
        let Window { file, place, .. } = &*self.window;
        FileRange::new(
            Arc::clone(file),
            place.offset + self.skip as u64,
            self.bytes,
        )
    }

    /// Whether the first so many bytes are in memory.
    fn is_in_memory(&self, bytes: usize) -> bool {
        let page = page_bytes();
        let start = self.skip - self.skip % page;
        let bytes = (self.skip + bytes).next_multiple_of(page) - start;
        let address = self.window.start.wrapping_byte_add(start);
        let mut pages = vec![0_u8; bytes / page];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let result = unsafe { libc::mincore(address, bytes, pages.as_mut_ptr()) };
        result == 0 && pages.iter().all(|page| page & 1 != 0)
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} bytes)", self.bytes)
    }
}

/// Whether the kernel tells what of a file is in memory. Of files that this process neither owns
/// nor may write it says that all of it is. mincore(2)
fn may_ask(file: BorrowedFd<'_>, status: &libc::stat) -> bool {
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

    /// As if nobody had asked for any of them for a while.
    fn age(views: &Views) {
        for window in &views.windows {
            let past = Instant::now().checked_sub(2 * KEEP);
            window
                .last_use
                .set(past.expect("the clock has run for longer"));
        }
    }

    fn file(bytes: u64) -> fs::File {
        let file = tempfile::tempfile().expect("a file");
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 5000], bytes - 5000).expect("room");
        file
    }

    #[test]
    fn windows_are_found_again_and_do_not_become_many() {
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
        // Through another descriptor, too.
        let again = last.try_clone_to_owned().expect("a descriptor");
        let view = views.find(again.as_fd(), 0, 4999).expect("it is there");
        assert_eq!(view.window.start, start);
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
    fn a_window_goes_though_others_are_asked_for() {
        let mut views = Views::new(8);
        let [removed, read] = [file(5000), file(5000)];
        assert!(views.find(removed.as_fd(), 0, 4999).is_ok());
        assert!(views.find(read.as_fd(), 0, 4999).is_ok());
        age(&views);
        assert!(views.find(read.as_fd(), 0, 4999).is_ok());
        assert!(views.forget_unused());
        assert_eq!(views.windows.len(), 1);
    }

    #[test]
    fn windows_in_use_make_room_for_no_others() {
        let mut views = Views::new(2);
        let files: Vec<_> = (0..3).map(|_| file(5000)).collect();
        let find = |views: &mut Views, file: usize| views.find(files[file].as_fd(), 1, 4000);
        let held = [find(&mut views, 0), find(&mut views, 1)];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(find(&mut views, 2).err(), Some(NoView::NotThere));
        assert!(find(&mut views, 1).is_ok(), "it is there already");
        drop(held);
        assert!(find(&mut views, 2).is_ok());
    }

    /// Whoever is told of no page finds none.
    #[test]
    fn what_others_own_is_not_found() {
        const NOBODY: libc::uid_t = 65_534;
        if sys::user() != 0 {
            return;
        }
        let file = file(5000);
        let become_nobody = || {
            // SAFETY: takes no memory; of this thread alone, which ends.
            unsafe { libc::syscall(libc::SYS_setresuid, -1, NOBODY, -1) }
        };
        let is_found = || Views::new(8).find(file.as_fd(), 0, 4999).is_ok();
        assert!(is_found());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(become_nobody(), 0);
                assert!(!is_found());
            });
        });
        let permissions = fs::Permissions::from_mode(0o666);
        file.set_permissions(permissions).expect("the owner may");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(become_nobody(), 0);
                assert!(is_found());
            });
        });
    }

    /// A file that is written to for the first time becomes another one there, and a mapping of it
    /// does not.
    #[test]
    fn a_file_in_layers_is_not_mapped() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root = scratch.path();
        let lay_out = || -> io::Result<()> {
            mount("tmpfs", root, "")?;
            for folder in ["lower", "upper", "work", "merged"] {
                fs::create_dir(root.join(folder))?;
            }
            fs::write(root.join("lower/file"), vec![7; MAPPED_BYTES_MIN as usize])?;
            let layer = |name: &str| format!("{name}dir={}/{name}", root.display());
            let layers = ["lower", "upper", "work"].map(layer).join(",");
            mount("overlay", &root.join("merged"), &layers)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Who may not mount, or has no overlayfs, cannot try it.
                if !has_own_mounts() || lay_out().is_err() {
                    return;
                }
                let file = fs::File::open(root.join("merged/file")).expect("it is in the lower");
                let found = Views::new(8).find(file.as_fd(), 0, 5000);
                assert_eq!(found.err(), Some(NoView::NotThere));
            });
        });
    }

    /// Gives this thread mounts of its own, which end with it.
    fn has_own_mounts() -> bool {
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: takes no memory, and is of this thread alone.
        let is_apart = unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0;
        // SAFETY: the path is a string with its end, and nothing else is looked at.
        is_apart
            && unsafe { libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), flags, ptr::null()) }
                == 0
    }

    fn mount(kind: &str, target: &std::path::Path, data: &str) -> io::Result<()> {
        let text = |text: &str| std::ffi::CString::new(text).map_err(io::Error::other);
        let target = text(&target.display().to_string())?;
        let (kind, data) = (text(kind)?, text(data)?);
        // SAFETY: all of them are strings with their ends, which outlive the call.
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
        std::os::unix::fs::FileExt::write_all_at(&file, &whole, 0).expect("room");
        assert!(Views::new(8).find(file.as_fd(), 0, least).is_ok());
    }

    #[test]
    fn a_range_over_the_border_of_windows_is_not_found() {
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

//! An open file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use proto::client::request::{Attributes, Created, FileRef, ReadData, Reply};
use proto::client::{Request, RequestId, Step};
use ring::{Region, Source, lend, lend_mut};
use wire::fscc::{FileEndOfFileInformation, FileInfoClass, FileStandardInformation, InfoType};
use wire::fscc::{FileInternalInformation, FileNetworkOpenInformation};
use wire::fsctl::{AllocatedRange, CtlCode, ZeroData};
use wire::lock::{LockElement, LockFlags};
use wire::tree_connect::ShareType;
use wire::{FileId, Status};

use crate::Wait;
use crate::buffer::{IoBuf, IoSource};
use crate::error::{Cause, Error};
use crate::io::call::{Done, Memory, Pending};
use crate::io::window::Window;
use crate::metadata::{Changes, Metadata};
use crate::open_options::OpenOptions;
use crate::session::unexpected;
use crate::share::Share;
use crate::stream::{FileReader, FileWriter};

/// Bytes of a list of ranges that are asked for at a time.
const RANGES_LEN: u32 = 64 << 10;
/// Ranges of a file that are told apart, at most: 16 MiB of them. Nothing but a limit ends a list
/// that the server makes up.
const RANGES_MAX: usize = 1 << 20;
/// Places of LOCKs that a server remembers of an open. \[MS-SMB2\] 3.3.1.10, Open.LockSequenceArray
const LOCK_SEQUENCES: u32 = 64;
/// Bytes of another file's answer to what it is.
const NETWORK_OPEN_LEN: u32 = 56;

/// An open file or directory. Cheap to clone; the last clone to go closes it in the background.
/// [`close`](Self::close) tells what came of that.
#[derive(Clone)]
pub struct File {
    inner: Arc<Inner>,
}

struct Inner {
    share: Share,
    path: String,
    id: FileId,
    /// What was known when it was opened.
    opened: Attributes,
    is_append: bool,
    is_write_through: bool,
    is_closed: AtomicBool,
    /// LOCKs so far: each has a number of its own.
    locks: AtomicU32,
}

/// How a range is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Others may read.
    Shared,
    /// Others may neither read nor write.
    Exclusive,
}

impl File {
    pub(crate) fn new(share: &Share, path: &str, created: &Created, options: &OpenOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                share: share.clone(),
                path: path.to_owned(),
                id: created.file_id,
                opened: created.attributes,
                is_append: options.append,
                is_write_through: options.write_through,
                is_closed: AtomicBool::new(false),
                locks: AtomicU32::new(0),
            }),
        }
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &str {
        &self.inner.path
    }

    /// The share that it is in.
    pub fn share(&self) -> &Share {
        &self.inner.share
    }

    pub(crate) fn file(&self) -> FileRef {
        FileRef::Id(self.inner.id)
    }

    pub(crate) fn is_append(&self) -> bool {
        self.inner.is_append
    }

    /// What was known of it when it was opened: costs nothing.
    pub fn opened_metadata(&self) -> Metadata {
        Metadata::from_attributes(&self.inner.opened, None)
    }

    /// Bytes of one READ, where no transfer chooses another size.
    pub(crate) fn read_size(&self) -> usize {
        self.most_read().min(self.usual_size())
    }

    /// Bytes of one WRITE, where no transfer chooses another size.
    pub(crate) fn write_size(&self) -> usize {
        self.most_write().min(self.usual_size())
    }

    fn usual_size(&self) -> usize {
        self.inner.share.session().options().usual_bytes() as usize
    }

    /// Bytes of one READ at most.
    pub(crate) fn most_read(&self) -> usize {
        self.inner.share.max_read() as usize
    }

    /// Bytes of one WRITE at most.
    pub(crate) fn most_write(&self) -> usize {
        self.inner.share.max_write() as usize
    }

    /// Whether a transfer may open it once more on another connection.
    pub(crate) fn may_be_opened_again(&self) -> bool {
        let is_plain = !self.inner.is_append && !self.inner.is_write_through;
        is_plain && self.inner.share.may_have_another()
    }

    /// Whether parts of files go from there straight to the connections: those can, and nothing is
    /// done to them on the way. What is signed or sealed is read first, by the thread that
    /// transfers it: reading may wait for a disk, and the I/O thread has others to serve.
    pub(crate) fn sends_files(&self) -> bool {
        let share = &self.inner.share;
        !share.is_protected() && share.session().dispatch().sends_files()
    }

    /// Requests in flight of one operation.
    pub(crate) fn depth(&self) -> usize {
        self.inner.share.session().depth()
    }

    /// Says what failed.
    pub(crate) fn failed(&self, operation: &'static str, cause: Cause) -> Error {
        cause.of(operation, self.path())
    }

    /// What is known of it now.
    pub async fn metadata(&self) -> Result<Metadata, Error> {
        let operation = "look at";
        let info = self.query(FileInfoClass::NETWORK_OPEN, NETWORK_OPEN_LEN);
        let number = self.query(FileInfoClass::INTERNAL, FileInternalInformation::LEN as u32);
        let info = output(info.await).map_err(|cause| self.failed(operation, cause))?;
        let info = FileNetworkOpenInformation::decode(&info)
            .map_err(|error| self.failed(operation, error.into()))?;
        // A server that numbers no files says so.
        let number = output(number.await)
            .ok()
            .and_then(|bytes| FileInternalInformation::decode(&bytes).ok());
        let attributes = Attributes {
            created: info.created,
            accessed: info.accessed,
            written: info.written,
            changed: info.changed,
            allocation: info.allocation_size,
            size: info.end_of_file,
            attributes: info.attributes,
        };
        let number = number.map(|number| number.index_number);
        Ok(Metadata::from_attributes(&attributes, number))
    }

    /// Bytes in the file now.
    #[expect(clippy::len_without_is_empty, reason = "a file asks the server")]
    pub async fn len(&self) -> Result<u64, Error> {
        let length = FileStandardInformation::LEN as u32;
        let pending = self.query(FileInfoClass::STANDARD, length);
        let bytes = output(pending.await).map_err(|cause| self.failed("look at", cause))?;
        FileStandardInformation::decode(&bytes)
            .map(|info| info.end_of_file)
            .map_err(|error| self.failed("look at", error.into()))
    }

    fn query(&self, class: FileInfoClass, length: u32) -> Pending {
        let step = Step::QueryInfo {
            file: self.file(),
            info_type: InfoType::FILE,
            class: class.0,
            additional: 0,
            length,
        };
        self.inner.share.start(vec![step], Memory::None)
    }

    /// Reads from `offset` on until the buffer is full or the file ends; tells how many bytes.
    /// Large buffers are read in pieces, several at a time.
    pub async fn read_at<B: IoBuf>(&self, buffer: B, offset: u64) -> (Result<usize, Error>, B) {
        let (result, region) = self.read_region(buffer.into_region(), offset).await;
        (result, region.map_or_else(B::lost, B::from_region))
    }

    /// Reads `len` bytes, or fewer where the file ends, into memory of the client. What one READ
    /// brings is memory that is used again once the region is dropped: who has much in flight and
    /// keeps little finds it in the cache.
    pub async fn read(&self, len: usize, offset: u64) -> Result<Region, Error> {
        if len == 0 || len > self.read_size() {
            let (count, bytes) = self.read_at(Region::from(vec![0; len]), offset).await;
            return Ok(Memory::Destination(bytes).filled(count?));
        }
        let (reply, memory) = self.start_read_wanted(len, offset).await.only();
        let failed = |cause| self.failed("read", cause);
        let count = count(reply).map_err(failed)?;
        let part = memory.filled(count);
        if !self.has_rest(count, len, offset) {
            return Ok(part);
        }
        let mut whole = Region::from(vec![0; len]);
        whole[..count].copy_from_slice(&part);
        let rest = self.read_rest(&mut whole, count, offset).await;
        Ok(Memory::Destination(whole).filled(rest.map_err(failed)?))
    }

    /// Writes all bytes from `offset` on, or fails. Tells how many.
    pub async fn write_at<B: IoSource>(&self, buffer: B, offset: u64) -> (Result<usize, Error>, B) {
        let (result, source) = self.write_source(buffer.into_source(), offset).await;
        (result, source.map_or_else(B::lost_source, B::from_source))
    }

    /// Reads several ranges at a time. What came of each is in the order in which they were given.
    pub async fn read_ranges<B: IoBuf>(
        &self,
        ranges: Vec<(u64, B)>,
    ) -> Vec<(Result<usize, Error>, B)> {
        let mut window = Window::default();
        let mut results: Vec<Option<(Result<usize, Error>, B)>> = Vec::new();
        results.resize_with(ranges.len(), || None);
        let mut ranges = ranges.into_iter().enumerate();
        loop {
            while window.len() < self.depth()
                && let Some((index, (offset, buffer))) = ranges.next()
            {
                let region = buffer.into_region();
                if region.len() > self.read_size() {
                    let (result, region) = self.read_region(region, offset).await;
                    let buffer = region.map_or_else(B::lost, B::from_region);
                    results[index] = Some((result, buffer));
                } else {
                    window.push((index, offset), self.start_read(region, offset));
                }
            }
            let Some(((index, offset), done)) = window.next().await else {
                break;
            };
            let (result, region) = self.finish_read(done, offset).await;
            let result = result.map_err(|cause| self.failed("read", cause));
            let buffer = region.map_or_else(B::lost, B::from_region);
            results[index] = Some((result, buffer));
        }
        results
            .into_iter()
            .map(|result| result.expect("each range was read"))
            .collect()
    }

    /// Writes several ranges at a time. What came of each is in the order in which they were
    /// given.
    pub async fn write_ranges<B: IoSource>(
        &self,
        ranges: Vec<(u64, B)>,
    ) -> Vec<(Result<usize, Error>, B)> {
        let mut window = Window::default();
        let mut results: Vec<Option<(Result<usize, Error>, B)>> = Vec::new();
        results.resize_with(ranges.len(), || None);
        let mut ranges = ranges.into_iter().enumerate();
        loop {
            while window.len() < self.depth()
                && let Some((index, (offset, buffer))) = ranges.next()
            {
                let source = buffer.into_source();
                let len = source.len();
                if len > self.write_size() {
                    let (result, source) = self.write_source(source, offset).await;
                    let buffer = source.map_or_else(B::lost_source, B::from_source);
                    results[index] = Some((result, buffer));
                } else {
                    window.push((index, len), self.start_write(source, offset));
                }
            }
            let Some(((index, len), done)) = window.next().await else {
                break;
            };
            let (reply, memory) = done.only();
            let result = written(reply, len).map_err(|cause| self.failed("write", cause));
            let source = memory.into_source();
            let buffer = source.map_or_else(B::lost_source, B::from_source);
            results[index] = Some((result, buffer));
        }
        results
            .into_iter()
            .map(|result| result.expect("each range was written"))
            .collect()
    }

    /// Fills the buffer from `offset` on, on this thread, which waits. A file that ends before is
    /// END_OF_FILE.
    pub fn read_exact_at_blocking(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let len = buffer.len();
        let result = lend_mut(buffer, |region| self.read_region(region, offset).wait().0)?;
        match result == len {
            true => Ok(()),
            false => Err(self.failed("read", Cause::Status(Status::END_OF_FILE))),
        }
    }

    /// Writes all bytes from `offset` on, on this thread, which waits.
    pub fn write_all_at_blocking(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        lend(bytes, |source| self.write_source(source, offset).wait().0).map(drop)
    }

    /// Sends a READ of one piece on its way.
    pub(crate) fn start_read(&self, region: Region, offset: u64) -> Pending {
        let step = Step::Read {
            file: self.file(),
            offset,
            length: u32::try_from(region.len()).expect("a piece is no longer than a READ"),
            minimum: 0,
        };
        let memory = Memory::Destination(region);
        self.inner.share.start(vec![step], memory)
    }

    /// The same, into memory of the channel.
    pub(crate) fn start_read_wanted(&self, len: usize, offset: u64) -> Pending {
        let step = Step::Read {
            file: self.file(),
            offset,
            length: u32::try_from(len).expect("a piece is no longer than a READ"),
            minimum: 0,
        };
        self.inner.share.start(vec![step], Memory::Wanted(len))
    }

    /// Sends a WRITE of one piece on its way.
    pub(crate) fn start_write(&self, source: Source, offset: u64) -> Pending {
        self.start_write_from(Memory::Source(source), offset, None)
    }

    /// The same, from wherever the bytes are, and perhaps once another one is answered.
    pub(crate) fn start_write_from(
        &self,
        memory: Memory,
        offset: u64,
        behind: Option<RequestId>,
    ) -> Pending {
        let step = Step::Write {
            file: self.file(),
            offset,
            length: u32::try_from(memory.len()).expect("a piece is no longer than a WRITE"),
            through: self.inner.is_write_through,
        };
        let mut request = Request::new(None, vec![step]);
        request.behind = behind;
        self.inner.share.start_request(request, memory)
    }

    async fn read_region(
        &self,
        region: Region,
        offset: u64,
    ) -> (Result<usize, Error>, Option<Region>) {
        if region.is_empty() {
            return (Ok(0), Some(region));
        }
        if region.len() <= self.read_size() {
            let done = self.start_read(region, offset).await;
            let (result, region) = self.finish_read(done, offset).await;
            return (result.map_err(|cause| self.failed("read", cause)), region);
        }
        self.read_pieces(region, offset).await
    }

    /// Takes what a READ brought, and asks for the rest of it.
    async fn finish_read(&self, done: Done, offset: u64) -> (Result<usize, Cause>, Option<Region>) {
        let (reply, memory) = done.only();
        let mut region = memory.into_region();
        let result = match (count(reply), &mut region) {
            (Ok(count), Some(region)) => self.read_rest(region, count, offset).await,
            (result, _) => result,
        };
        (result, region)
    }

    /// Whether something may be behind the first `count` bytes of `len`: a server may give less
    /// than it was asked for. Who has read up to where the file ended when it was opened is not
    /// to pay for that, and a pipe gives what it has.
    fn has_rest(&self, count: usize, len: usize, offset: u64) -> bool {
        let is_short = 0 < count && count < len;
        let is_at_end = offset + count as u64 == self.inner.opened.size;
        is_short && !is_at_end && self.inner.share.share_type() == ShareType::DISK
    }

    /// Reads what a READ left out, until the file ends; tells how many bytes there are then.
    async fn read_rest(
        &self,
        region: &mut Region,
        mut there: usize,
        offset: u64,
    ) -> Result<usize, Cause> {
        while self.has_rest(there, region.len(), offset) {
            let rest = self.start_read_wanted(region.len() - there, offset + there as u64);
            let (reply, memory) = rest.await.only();
            let more = match count(reply)? {
                0 => break,
                more => more,
            };
            region[there..there + more].copy_from_slice(&memory.filled(more));
            there += more;
        }
        Ok(there)
    }

    async fn read_pieces(
        &self,
        region: Region,
        offset: u64,
    ) -> (Result<usize, Error>, Option<Region>) {
        let size = self.read_size();
        let pieces = region.into_pieces(size);
        let mut home = Vec::with_capacity(pieces.len());
        let mut results: Vec<Result<(usize, usize), Cause>> = Vec::new();
        results.resize_with(pieces.len(), || Ok((0, 0)));
        let mut window = Window::default();
        let mut pieces = pieces.into_iter().enumerate();
        let mut has_ended = false;
        loop {
            while !has_ended
                && window.len() < self.depth()
                && let Some((index, piece)) = pieces.next()
            {
                let len = piece.len();
                let offset = offset + (index * size) as u64;
                window.push((index, len, offset), self.start_read(piece, offset));
            }
            let Some(((index, len, offset), done)) = window.next().await else {
                break;
            };
            let (result, region) = self.finish_read(done, offset).await;
            home.extend(region);
            results[index] = result.map(|count| (count, len));
            has_ended |= !matches!(results[index], Ok((count, len)) if count == len);
        }
        home.extend(pieces.map(|(_, piece)| piece));
        let result = total(results).map_err(|cause| self.failed("read", cause));
        (result, Region::from_pieces(home))
    }

    async fn write_source(
        &self,
        source: Source,
        offset: u64,
    ) -> (Result<usize, Error>, Option<Source>) {
        if source.is_empty() {
            return (Ok(0), Some(source));
        }
        let (size, total) = (self.write_size(), source.len());
        if total <= size {
            let (reply, memory) = self.start_write(source, offset).await.only();
            let result = written(reply, total).map_err(|cause| self.failed("write", cause));
            return (result, memory.into_source());
        }
        let pieces = source.into_pieces(size);
        let mut home = Vec::with_capacity(pieces.len());
        let mut failed = None;
        let mut window = Window::default();
        let mut pieces = pieces.into_iter().enumerate();
        loop {
            while failed.is_none()
                && window.len() < self.depth()
                && let Some((index, piece)) = pieces.next()
            {
                let len = piece.len();
                window.push(len, self.start_write(piece, offset + (index * size) as u64));
            }
            let Some((len, done)) = window.next().await else {
                break;
            };
            let (reply, memory) = done.only();
            home.extend(memory.into_source());
            if let Err(cause) = written(reply, len) {
                failed.get_or_insert(cause);
            }
        }
        home.extend(pieces.map(|(_, piece)| piece));
        let result = match failed {
            None => Ok(total),
            Some(cause) => Err(self.failed("write", cause)),
        };
        (result, Source::from_pieces(home))
    }

    /// Makes it shorter or longer.
    pub async fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut buffer = Vec::new();
        FileEndOfFileInformation { end_of_file: len }.encode(&mut buffer);
        self.set("resize", FileInfoClass::END_OF_FILE, buffer).await
    }

    /// Waits until all that was written is on stable storage.
    pub async fn sync(&self) -> Result<(), Error> {
        self.ask("sync", Step::Flush(self.file())).await.map(drop)
    }

    /// Changes times and attributes.
    pub async fn set_metadata(&self, changes: &Changes) -> Result<(), Error> {
        let operation = "change the attributes of";
        self.set(operation, FileInfoClass::BASIC, changes.encode())
            .await
    }

    /// Gives it another name within its share. With `replace` a file of that name gives way.
    pub async fn rename(&self, to: &str, replace: bool) -> Result<(), Error> {
        let buffer = crate::share::rename(to, replace)?;
        self.set("rename", FileInfoClass::RENAME, buffer).await
    }

    /// Locks a range. `wait`: until others let go, else it fails with LOCK_NOT_GRANTED. Dropping
    /// the future gives up waiting.
    pub async fn lock(&self, range: Range<u64>, kind: LockKind, wait: bool) -> Result<(), Error> {
        let flags = match kind {
            LockKind::Shared => LockFlags::SHARED_LOCK,
            LockKind::Exclusive => LockFlags::EXCLUSIVE_LOCK,
        };
        let flags = match wait {
            true => flags,
            false => flags | LockFlags::FAIL_IMMEDIATELY,
        };
        self.lock_step("lock", &range, flags, wait).await
    }

    /// Unlocks a range that was locked exactly so.
    pub async fn unlock(&self, range: Range<u64>) -> Result<(), Error> {
        self.lock_step("unlock", &range, LockFlags::UNLOCK, false)
            .await
    }

    /// By what the server knows a LOCK that is sent again: one of 64 places, and how often that
    /// one was taken before, in 4 bits. 0 where nothing is sent again.
    /// \[MS-SMB2\] 2.2.26, 3.2.4.19
    fn next_lock_sequence(&self) -> u32 {
        if !self.inner.share.session().may_replay() {
            return 0;
        }
        let count = self.inner.locks.fetch_add(1, Ordering::Relaxed);
        let (index, number) = (count % LOCK_SEQUENCES + 1, count / LOCK_SEQUENCES % 16);
        index << 4 | number
    }

    async fn lock_step(
        &self,
        operation: &'static str,
        range: &Range<u64>,
        flags: LockFlags,
        wait: bool,
    ) -> Result<(), Error> {
        let element = LockElement {
            offset: range.start,
            length: range.end.saturating_sub(range.start),
            flags,
        };
        let step = Step::Lock {
            file: self.file(),
            sequence: self.next_lock_sequence(),
            locks: vec![element],
        };
        let mut request = Request::new(None, vec![step]);
        request.timeout = wait.then_some(None);
        let pending = self.inner.share.start_request(request, Memory::None);
        let (reply, _) = pending.await.only();
        reply
            .map(drop)
            .map_err(|cause| self.failed(operation, cause))
    }

    /// The parts of a range that are no holes.
    ///
    /// # Errors
    /// Also where there are more than a million of them.
    pub async fn allocated_ranges(&self, range: Range<u64>) -> Result<Vec<Range<u64>>, Error> {
        let operation = "ask for the holes of";
        let mut found: Vec<Range<u64>> = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let mut input = Vec::new();
            AllocatedRange {
                file_offset: start,
                length: range.end - start,
            }
            .encode(&mut input);
            let code = CtlCode::QUERY_ALLOCATED_RANGES;
            let (output, has_more) = self
                .ioctl(code, input, RANGES_LEN)
                .await
                .map_err(|cause| self.failed(operation, cause))?;
            let list = AllocatedRange::decode_list(&output)
                .map_err(|error| self.failed(operation, error.into()))?;
            let ranges = list
                .iter()
                .map(|range| range.file_offset..range.file_offset.saturating_add(range.length));
            found.extend(ranges);
            if found.len() > RANGES_MAX {
                let why = "more ranges than can be told apart".to_owned();
                return Err(self.failed(operation, Cause::Malformed(why)));
            }
            let end = found.last().map_or(range.end, |last| last.end);
            if !has_more || end <= start {
                break;
            }
            start = end;
        }
        Ok(found)
    }

    /// Lets the file have holes, or no more of them.
    pub async fn set_sparse(&self, sparse: bool) -> Result<(), Error> {
        let input = vec![u8::from(sparse)];
        self.ioctl(CtlCode::SET_SPARSE, input, 0)
            .await
            .map(drop)
            .map_err(|cause| self.failed("make sparse", cause))
    }

    /// Makes a range zeros: a hole, where the file may have any.
    pub async fn zero_range(&self, range: Range<u64>) -> Result<(), Error> {
        let zero = ZeroData {
            file_offset: range.start,
            beyond_final_zero: range.end,
        };
        self.ioctl(CtlCode::SET_ZERO_DATA, zero.encode(), 0)
            .await
            .map(drop)
            .map_err(|cause| self.failed("zero a range of", cause))
    }

    /// Copies a range to another file, on the server where that can: see
    /// [`copy_range`](crate::transfer::copy_range).
    pub async fn copy_range_to(
        &self,
        target: &Self,
        from: u64,
        to: u64,
        len: u64,
    ) -> Result<u64, Error> {
        crate::transfer::copy::copy_range(self, target, from, to, len, &mut |_| {}).await
    }

    /// Calls a function of the server.
    pub(crate) async fn ioctl(
        &self,
        code: CtlCode,
        input: Vec<u8>,
        max_output: u32,
    ) -> Result<(Vec<u8>, bool), Cause> {
        let step = Step::Ioctl {
            file: Some(self.file()),
            code,
            input,
            max_output,
        };
        match self
            .inner
            .share
            .start(vec![step], Memory::None)
            .await
            .only()
        {
            (Ok(Reply::Ioctl(output, has_more)), _) => Ok((output, has_more)),
            (Ok(_), _) => Err(unexpected()),
            (Err(cause), _) => Err(cause),
        }
    }

    /// Reads with [`std::io::Read`] from the start on, ahead of its caller; blocks.
    pub fn reader(&self) -> FileReader {
        FileReader::new(self.clone())
    }

    /// Writes with [`std::io::Write`], behind its caller; blocks. Starts at the end of a file that
    /// was opened to append, else at the start.
    pub fn writer(&self) -> Result<FileWriter, Error> {
        FileWriter::new(self.clone())
    }

    /// Closes it, for all clones.
    pub async fn close(&self) -> Result<(), Error> {
        if self.inner.is_closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let step = Step::Close {
            file: self.file(),
            query: false,
        };
        self.ask("close", step).await.map(drop)
    }

    async fn set(
        &self,
        operation: &'static str,
        class: FileInfoClass,
        buffer: Vec<u8>,
    ) -> Result<(), Error> {
        let step = Step::SetInfo {
            file: self.file(),
            info_type: InfoType::FILE,
            class: class.0,
            additional: 0,
            buffer,
        };
        self.ask(operation, step).await.map(drop)
    }

    async fn ask(&self, operation: &'static str, step: Step) -> Result<Reply, Error> {
        let (reply, _) = self
            .inner
            .share
            .start(vec![step], Memory::None)
            .await
            .only();
        reply.map_err(|cause| self.failed(operation, cause))
    }
}

/// Bytes that a READ brought; the end of the file is none.
pub(crate) fn count(reply: Result<Reply, Cause>) -> Result<usize, Cause> {
    match reply {
        Ok(Reply::Read(ReadData::Placed(count))) => Ok(count as usize),
        Ok(_) => Err(unexpected()),
        Err(cause) if cause.status() == Some(Status::END_OF_FILE) => Ok(0),
        Err(cause) => Err(cause),
    }
}

/// Bytes that a WRITE took: all of them.
pub(crate) fn written(reply: Result<Reply, Cause>, len: usize) -> Result<usize, Cause> {
    match reply? {
        Reply::Written(count) if count as usize == len => Ok(len),
        Reply::Written(_) => Err(Cause::Malformed("not all was written".to_owned())),
        _ => Err(unexpected()),
    }
}

/// Bytes up to the first piece that is not full.
fn total(results: Vec<Result<(usize, usize), Cause>>) -> Result<usize, Cause> {
    let mut total = 0;
    for result in results {
        let (count, len) = result?;
        total += count;
        if count < len || len == 0 {
            break;
        }
    }
    Ok(total)
}

/// The output buffer of a query.
pub(crate) fn output(done: Done) -> Result<Vec<u8>, Cause> {
    match done.only().0? {
        Reply::Output(bytes, _) => Ok(bytes),
        _ => Err(unexpected()),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_closed.swap(true, Ordering::SeqCst) && self.share.session().dispatch().is_here()
        {
            self.share.close_detached(self.id);
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({})", self.path())
    }
}

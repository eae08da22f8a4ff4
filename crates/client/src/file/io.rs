//! Reading and writing at an offset.

use proto::client::request::{ReadData, Reply};
use proto::client::{Request, RequestId, Step};
use ring::{Region, Source, lend, lend_mut};
use wire::Status;
use wire::tree_connect::ShareType;

use crate::Wait;
use crate::buffer::{IoBuf, IoSource};
use crate::error::{Cause, Error, unexpected};
use crate::file::File;
use crate::io::call::{Done, Memory, Pending};
use crate::io::window::Window;

impl File {
    /// Length in bytes of a READ whose length no transfer chooses.
    pub(crate) fn read_size(&self) -> usize {
        self.most_read().min(self.usual_size())
    }

    /// Length in bytes of a WRITE whose length no transfer chooses.
    pub(crate) fn write_size(&self) -> usize {
        self.most_write().min(self.usual_size())
    }

    fn usual_size(&self) -> usize {
        self.inner.share.session().options().usual_bytes() as usize
    }

    /// Largest READ in bytes.
    pub(crate) fn most_read(&self) -> usize {
        self.inner.share.max_read() as usize
    }

    /// Largest WRITE in bytes.
    pub(crate) fn most_write(&self) -> usize {
        self.inner.share.max_write() as usize
    }

    /// Whether the connections send ranges of local files without a copy: the transport supports
    /// it, and the bytes are neither signed nor encrypted. Otherwise the thread of the transfer
    /// reads them first, because that may wait for a disk and the I/O thread serves other requests.
    pub(crate) fn sends_files(&self) -> bool {
        let share = &self.inner.share;
        !share.is_protected() && share.session().dispatch().sends_files()
    }

    /// Requests in flight for one operation.
    pub(crate) fn depth(&self) -> usize {
        self.inner.share.session().depth()
    }

    /// Reads from `offset` (bytes) of the file until the buffer is full or the file ends. Returns
    /// the count of read bytes and the buffer. The client reads a large buffer by several READs at
    /// a time.
    ///
    /// # Errors
    /// An I/O error of the server, a byte-range lock, no right to read, or a lost connection. The
    /// buffer is returned nevertheless.
    pub async fn read_at<B: IoBuf>(&self, buffer: B, offset: u64) -> (Result<usize, Error>, B) {
        let (result, region) = self.read_region(buffer.into_region(), offset).await;
        (result, region.map_or_else(B::lost, B::from_region))
    }

    /// Reads `len` bytes from `offset`, or fewer at the end of the file, into memory that the
    /// client allocates. Returns the read bytes. The client reuses their memory after the caller
    /// has dropped the returned region.
    ///
    /// # Errors
    /// An I/O error of the server, a byte-range lock, no right to read, or a lost connection.
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

    /// Writes all bytes of the buffer to the file, starting at `offset` (bytes). Returns the count
    /// of written bytes, which is the length of the buffer, and the buffer.
    ///
    /// # Errors
    /// The volume is full, a byte-range lock, no right to write, or a lost connection. An unknown
    /// part of the bytes may be written then. The buffer is returned nevertheless.
    pub async fn write_at<B: IoSource>(&self, buffer: B, offset: u64) -> (Result<usize, Error>, B) {
        let (result, source) = self.write_source(buffer.into_source(), offset).await;
        (result, source.map_or_else(B::lost_source, B::from_source))
    }

    /// Reads several ranges of the file at the same time. Each element is an offset in bytes with
    /// the buffer to fill. Returns one element for each range, in the order of `ranges`: the count
    /// of read bytes and the buffer. A count below the length of the buffer means that the file
    /// ends there.
    ///
    /// # Errors
    /// Each result has its own error: an I/O error of the server, a byte-range lock, no right to
    /// read, or a lost connection. An error of one range does not end the reads of the others. The
    /// buffer is returned in any case.
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

    /// Writes several ranges of the file at the same time. Each element is an offset in bytes with
    /// the bytes to write. Returns one element for each range, in the order of `ranges`: the count
    /// of written bytes, which is the whole length, and the buffer. The server may execute the
    /// writes in any order.
    ///
    /// # Errors
    /// Each result has its own error: the volume is full, a byte-range lock, no right to write, or
    /// a lost connection. An unknown part of that range may be written then. An error of one range
    /// does not end the writes of the others. The buffer is returned in any case.
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

    /// Fills the buffer with the bytes of the file from `offset` (bytes), and blocks the thread.
    ///
    /// # Errors
    /// The file ends before the buffer is full: END_OF_FILE. Other errors are an I/O error of the
    /// server, a byte-range lock, no right to read, or a lost connection.
    pub fn read_exact_at_blocking(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let len = buffer.len();
        let result = lend_mut(buffer, |region| self.read_region(region, offset).wait().0)?;
        match result == len {
            true => Ok(()),
            false => Err(self.failed("read", Cause::Status(Status::END_OF_FILE))),
        }
    }

    /// Writes all `bytes` to the file, starting at `offset` (bytes), and blocks the thread.
    ///
    /// # Errors
    /// The volume is full, a byte-range lock, no right to write, or a lost connection. An unknown
    /// part of the bytes may be written then.
    pub fn write_all_at_blocking(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        lend(bytes, |source| self.write_source(source, offset).wait().0).map(drop)
    }

    /// Starts a READ of one piece.
    pub(crate) fn start_read(&self, region: Region, offset: u64) -> Pending {
        let step = Step::Read {
            file: self.file(),
            offset,
            length: u32::try_from(region.len()).expect("a piece is no longer than a READ"),
            minimum: 0,
        };
        self.start(vec![step], Memory::Destination(region))
    }

    /// Starts a READ of one piece into memory of the channel.
    pub(crate) fn start_read_wanted(&self, len: usize, offset: u64) -> Pending {
        let step = Step::Read {
            file: self.file(),
            offset,
            length: u32::try_from(len).expect("a piece is no longer than a READ"),
            minimum: 0,
        };
        self.start(vec![step], Memory::Wanted(len))
    }

    /// Starts a WRITE of one piece.
    pub(crate) fn start_write(&self, source: Source, offset: u64) -> Pending {
        self.start_write_from(Memory::Source(source), offset, None)
    }

    /// Starts a WRITE of one piece from any memory, after the response to request `behind`.
    pub(crate) fn start_write_from(
        &self,
        memory: Memory,
        offset: u64,
        behind: Option<RequestId>,
    ) -> Pending {
        let step = self.write_step(memory.len(), offset);
        let mut request = Request::new(None, vec![step]);
        request.behind = behind;
        self.start_request(request, memory)
    }

    /// A WRITE of one piece.
    pub(crate) fn write_step(&self, len: usize, offset: u64) -> Step {
        Step::Write {
            file: self.file(),
            offset,
            length: u32::try_from(len).expect("a piece is no longer than a WRITE"),
            through: self.inner.is_write_through,
        }
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

    /// Takes the data of a READ, and requests the rest if the server returned fewer bytes.
    async fn finish_read(&self, done: Done, offset: u64) -> (Result<usize, Cause>, Option<Region>) {
        let (reply, memory) = done.only();
        let mut region = memory.into_region();
        let result = match (count(reply), &mut region) {
            (Ok(count), Some(region)) => self.read_rest(region, count, offset).await,
            (result, _) => result,
        };
        (result, region)
    }

    /// Whether the file may have more bytes behind the first `count` bytes of `len`: a server may
    /// return fewer bytes than requested. A read up to the end that the file had at its open needs
    /// no further request, and a pipe returns the bytes that it has.
    fn has_rest(&self, count: usize, len: usize, offset: u64) -> bool {
        let is_short = 0 < count && count < len;
        let is_at_end = offset + count as u64 == self.inner.opened.size;
        is_short && !is_at_end && self.inner.share.share_type() == ShareType::DISK
    }

    /// Reads the bytes that a READ left out, up to the end of the file. Returns the total count.
    async fn read_rest(
        &self,
        region: &mut Region,
        mut filled: usize,
        offset: u64,
    ) -> Result<usize, Cause> {
        while self.has_rest(filled, region.len(), offset) {
            let rest = self.start_read_wanted(region.len() - filled, offset + filled as u64);
            let (reply, memory) = rest.await.only();
            let more = match count(reply)? {
                0 => break,
                more => more,
            };
            region[filled..filled + more].copy_from_slice(&memory.filled(more));
            filled += more;
        }
        Ok(filled)
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
}

/// Count of bytes of a READ; 0 at the end of the file.
pub(crate) fn count(reply: Result<Reply, Cause>) -> Result<usize, Cause> {
    match reply {
        Ok(Reply::Read(ReadData::Placed(count))) => Ok(count as usize),
        Ok(_) => Err(unexpected()),
        Err(cause) if cause.status() == Some(Status::END_OF_FILE) => Ok(0),
        Err(cause) => Err(cause),
    }
}

/// Count of bytes of a WRITE: all of them, or the WRITE failed. Samba writes the bytes for which
/// the volume has space, so a smaller count has the meaning of DISK_FULL.
pub(crate) fn written(reply: Result<Reply, Cause>, len: usize) -> Result<usize, Cause> {
    match reply? {
        Reply::Written(count) if count as usize == len => Ok(len),
        Reply::Written(_) => Err(Cause::Status(Status::DISK_FULL)),
        _ => Err(unexpected()),
    }
}

/// Count of bytes up to the first piece that is not full.
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

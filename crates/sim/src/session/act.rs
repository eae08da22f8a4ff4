//! The operations of a session, chosen at random.

use proto::client::Request;
use proto::client::request::{Create, Durability, FileRef, Step};
use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, OplockLevel, ShareAccess,
};
use wire::cursor::Put;
use wire::fscc::{FileInfoClass, FileRenameInformation};
use wire::fsctl::{Chunk, CopyChunkRequest, CtlCode, ZeroData};
use wire::lock::{LockElement, LockFlags};
use wire::query_info::InfoType;
use wire::text::utf16;
use wire::{FileId, Guid, Utf16};

use super::appends;
use super::peer::{Around, Order, Peer, Phase};
use super::script::{Attempt, Intent, LOCK_BYTES, Rig, Slot, State, Subject};
use crate::check::Check;
use crate::check::contents::{CELL, CELLS, Filling, Stamp};

/// Number of files that all sessions write to.
pub(super) const CONTENTS: u64 = 3;
/// Usual number of cells of one READ or WRITE.
const FEW: u64 = 6;
/// Number of cells in more than 64 KiB: such a request costs several credits.
const MANY: u32 = 140;
/// Maximum number of opens of a session.
const SLOTS_MAX: usize = 12;
/// Maximum number of files that one compound reads.
const PEEKS_MAX: u64 = 3;
/// WriteOffset of a WRITE that appends.
const AT_THE_END: u64 = u64::MAX;

/// Returns the name of a file that all sessions write to.
pub(super) fn content_name(key: u64) -> String {
    format!("content-{key}")
}

/// Returns the name of the file to which a session appends.
pub(super) fn log_name(file: u64) -> String {
    format!("log-{file}")
}

impl Peer {
    /// Connects to the share.
    pub(super) fn enter(&mut self, around: &mut Around<'_>) -> Check {
        let request = Request::new(None, vec![Step::TreeConnect("data".into())]);
        self.submit(request, Vec::new(), Intent::Enter, around)
    }

    /// Starts the next operation, if one is left.
    pub(super) fn think(&mut self, around: &mut Around<'_>) -> Check {
        match self.phase {
            Phase::Running if self.script.quota > 0 => {
                if self.in_flight() < around.scenario.depth {
                    self.script.quota -= 1;
                    self.act(around)?;
                } else if self.script.choices.per_mille(100) {
                    self.cancel_waiting(around)?;
                }
            }
            // The other sessions have not finished: a session without operations keeps the load up.
            Phase::Running if !around.is_calm => {}
            Phase::Running => {
                self.phase = Phase::Tidying;
                self.cancel_waiting(around)?;
            }
            Phase::Tidying => self.tidy(around)?,
            Phase::Entering if self.in_flight() == 0 => return self.enter(around),
            Phase::Leaving if self.in_flight() == 0 => return self.hang_up(around),
            Phase::Away | Phase::Entering | Phase::Leaving | Phase::Done => return Ok(()),
        }
        around.orders.push(Order::Think);
        Ok(())
    }

    /// Closes all opens and logs off.
    fn tidy(&mut self, around: &mut Around<'_>) -> Check {
        if self.in_flight() > 0 {
            return self.cancel_waiting(around);
        }
        let left = self.script.pick(|_| true);
        if let Some((slot, file_id)) = left {
            return self.close(slot, file_id, around);
        }
        if self.script.choices.per_mille(300) {
            return self.hang_up(around);
        }
        self.phase = Phase::Leaving;
        let request = Request::new(None, vec![Step::Logoff]);
        self.submit(request, Vec::new(), Intent::Leave, around)
    }

    fn act(&mut self, around: &mut Around<'_>) -> Check {
        match self.script.choices.below(100) {
            0..12 => self.open_content(around),
            12..34 => self.write(around),
            34..46 => self.read(around),
            46..50 => self.peek(around),
            50..56 => self.copy(around),
            56..64 => self.append(around),
            64..74 => self.name(around),
            74..88 => self.lock(around),
            88..94 => self.close_one(around),
            _ => self.ask(around),
        }
    }

    fn open_content(&mut self, around: &mut Around<'_>) -> Check {
        let key = self.script.choices.below(CONTENTS);
        let disposition = match self.script.choices.per_mille(150) {
            true => CreateDisposition::OVERWRITE_IF,
            false => CreateDisposition::OPEN_IF,
        };
        self.open(
            &content_name(key),
            Subject::Content(key),
            disposition,
            around,
        )
    }

    fn open(
        &mut self,
        name: &str,
        subject: Subject,
        disposition: CreateDisposition,
        around: &mut Around<'_>,
    ) -> Check {
        let script = &mut self.script;
        if script.slots.len() >= SLOTS_MAX && !matches!(subject, Subject::Lock(_)) {
            return self.close_one(around);
        }
        let number = script.next_slot;
        script.next_slot += 1;
        let intent = Intent::Open {
            slot: number,
            overwrites: disposition == CreateDisposition::OVERWRITE_IF,
            name: (disposition == CreateDisposition::CREATE).then(|| name.into()),
        };
        let slot = Slot {
            state: State::Opening,
            subject,
            file_id: FileId::default(),
            busy: 0,
            resume_key: None,
            deletes: Some(false),
            sequence: 0,
        };
        script.slots.insert(number, slot);
        let is_log = matches!(script.slots[&number].subject, Subject::Log(_));
        let mut create = self.create(name, disposition);
        if is_log {
            // A handle with FILE_WRITE_DATA does not append. [MS-FSA] 2.1.5.4
            create.access.0 &= !AccessMask::FILE_WRITE_DATA.0;
        }
        self.ask_for(Step::Create(create), Vec::new(), intent, around)
    }

    fn create(&mut self, name: &str, disposition: CreateDisposition) -> Create {
        let choices = &mut self.script.choices;
        let oplocks = [
            OplockLevel::NONE,
            OplockLevel::NONE,
            OplockLevel::II,
            OplockLevel::BATCH,
        ];
        let guid = choices.bytes();
        let guid: [u8; 16] = *guid.first_chunk().expect("it is longer");
        Create {
            name: name.into(),
            oplock: choices.pick(&oplocks),
            access: AccessMask::FILE_READ_DATA
                | AccessMask::FILE_WRITE_DATA
                | AccessMask::FILE_APPEND_DATA
                | AccessMask::FILE_READ_ATTRIBUTES
                | AccessMask::DELETE,
            attributes: FileAttributes::NONE,
            share: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
            disposition,
            options: CreateOptions::NON_DIRECTORY_FILE,
            lease: None,
            durable: Durability::None,
            create_guid: choices.per_mille(800).then_some(Guid(guid)),
            allocation: None,
            query_maximal_access: choices.per_mille(100),
            posix_mode: None,
            driver_acknowledges: false,
        }
    }

    /// Requests one step, and counts it at its open.
    fn ask_for(
        &mut self,
        step: Step,
        data: Vec<u8>,
        intent: Intent,
        around: &mut Around<'_>,
    ) -> Check {
        let mut request = Request::new(self.tree, vec![step]);
        if intent.may_wait() {
            request.timeout = Some(None);
        }
        if !data.is_empty() && self.script.choices.per_mille(300) {
            request.behind = self.newest();
        }
        if let Some(slot) = intent
            .slot()
            .and_then(|slot| self.script.slots.get_mut(&slot))
        {
            slot.busy += 1;
        }
        self.submit(request, data, intent, around)
    }

    fn some_cells(&mut self) -> std::ops::Range<u32> {
        let has_large = self.max_io() >= MANY * CELL as u32;
        let choices = &mut self.script.choices;
        let count = match has_large && choices.per_mille(50) {
            true => MANY,
            false => 1 + choices.below(FEW) as u32,
        };
        let start = choices.below(8) as u32;
        start..start + count
    }

    /// Returns an open of one of the shared files, and the number of the file.
    fn pick_content(&mut self) -> Option<(u64, FileId, u64)> {
        let (slot, file_id) = self
            .script
            .pick(|slot| matches!(slot.subject, Subject::Content(_)))?;
        match self.script.slots[&slot].subject {
            Subject::Content(key) => Some((slot, file_id, key)),
            _ => None,
        }
    }

    /// Writes stamps or zeros, or truncates.
    fn write(&mut self, around: &mut Around<'_>) -> Check {
        let Some((slot, file_id, key)) = self.pick_content() else {
            return self.open_content(around);
        };
        let file = FileRef::Id(file_id);
        let cells = self.some_cells();
        let kind = self.script.choices.below(10);
        let (cells, stamp, step) = match kind {
            0 => (cells.clone(), Stamp::default(), zero(file, &cells)),
            1 => {
                let end = self.script.choices.below(12) as u32;
                let mut buffer = Vec::new();
                buffer.put_u64(u64::from(end) * CELL as u64);
                let step = set_info(file, FileInfoClass::END_OF_FILE, buffer);
                (end..CELLS, Stamp::default(), step)
            }
            _ => {
                self.script.next_stamp += 1;
                let stamp = Stamp::of(self.id, self.script.next_stamp);
                let length = (cells.end - cells.start) * CELL as u32;
                let step = Step::Write {
                    file,
                    offset: u64::from(cells.start) * CELL as u64,
                    length,
                    through: false,
                };
                (cells, stamp, step)
            }
        };
        let data = match step {
            Step::Write { .. } => stamp.fill(cells.end - cells.start),
            _ => Vec::new(),
        };
        let intent = Intent::Write {
            slot,
            key,
            cells,
            stamp,
        };
        self.ask_for(step, data, intent, around)
    }

    fn read(&mut self, around: &mut Around<'_>) -> Check {
        let Some((slot, file_id, key)) = self.pick_content() else {
            return self.open_content(around);
        };
        let cells = self.some_cells();
        let step = read(FileRef::Id(file_id), &cells);
        let intent = Intent::Read { slot, key, cells };
        self.ask_for(step, Vec::new(), intent, around)
    }

    /// Opens, reads and closes in one compound; often several files in one compound.
    fn peek(&mut self, around: &mut Around<'_>) -> Check {
        let count = 1 + self.script.choices.below(PEEKS_MAX);
        let mut steps = Vec::new();
        let mut peeks = Vec::new();
        for _ in 0..count {
            let key = self.script.choices.below(CONTENTS);
            let cells = self.some_cells();
            let mut create = self.create(&content_name(key), CreateDisposition::OPEN);
            create.create_guid = None;
            let file = FileRef::Previous;
            steps.push(Step::Create(create));
            steps.push(read(file, &cells));
            steps.push(Step::Close { file, query: false });
            peeks.push((key, cells));
        }
        let request = Request::new(self.tree, steps);
        self.submit(request, Vec::new(), Intent::Peek(peeks), around)
    }

    /// Copies cells from an open with a known resume key, or requests a resume key.
    fn copy(&mut self, around: &mut Around<'_>) -> Check {
        let Some((slot, file_id, key)) = self.pick_content() else {
            return self.open_content(around);
        };
        let known = |slot: &Slot| match (&slot.subject, slot.resume_key) {
            (Subject::Content(key), Some(resume_key)) => Some((*key, resume_key)),
            _ => None,
        };
        let known: Vec<_> = self.script.slots.values().filter_map(known).collect();
        let file = FileRef::Id(file_id);
        if known.is_empty() {
            let step = ioctl(file, CtlCode::SRV_REQUEST_RESUME_KEY, Vec::new());
            return self.ask_for(step, Vec::new(), Intent::Key { slot }, around);
        }
        let choices = &mut self.script.choices;
        let (from, source_key) = choices.pick(&known);
        let length = 1 + choices.below(3) as u32;
        let (first, to) = (choices.below(4) as u32, choices.below(8) as u32);
        let chunk = Chunk {
            source_offset: u64::from(first) * CELL as u64,
            target_offset: u64::from(to) * CELL as u64,
            length: length * CELL as u32,
        };
        let input = CopyChunkRequest {
            source_key,
            chunks: vec![chunk],
        };
        let step = ioctl(file, CtlCode::SRV_COPYCHUNK_WRITE, input.encode());
        let intent = Intent::Copy {
            slot,
            key,
            fillings: vec![(to..to + length, Filling::Cells(from, first))],
        };
        self.ask_for(step, Vec::new(), intent, around)
    }

    /// Appends a record to the log of the session.
    fn append(&mut self, around: &mut Around<'_>) -> Check {
        let log = self.id as u64;
        let open = self.script.pick(|slot| slot.subject == Subject::Log(log));
        let Some((slot, file_id)) = open else {
            let is_coming = |slot: &Slot| slot.subject == Subject::Log(log);
            if self.script.slots.values().any(is_coming) {
                return self.read(around);
            }
            let disposition = CreateDisposition::OPEN_IF;
            return self.open(&log_name(log), Subject::Log(log), disposition, around);
        };
        let number = around.books.next_file();
        let data = appends::record(number);
        let step = Step::Write {
            file: FileRef::Id(file_id),
            offset: AT_THE_END,
            length: data.len() as u32,
            through: false,
        };
        let intent = Intent::Append {
            slot,
            file: log,
            number,
        };
        self.ask_for(step, data, intent, around)
    }

    fn next_name(&mut self) -> String {
        self.script.next_name += 1;
        format!("name-{}-{}", self.id, self.script.next_name)
    }

    /// Creates, renames or deletes a file.
    fn name(&mut self, around: &mut Around<'_>) -> Check {
        let is_idle = |slot: &Slot| {
            matches!(slot.subject, Subject::Named(_))
                && slot.busy == 0
                && slot.deletes == Some(false)
        };
        let named = self.script.pick(is_idle);
        let choice = self.script.choices.below(8);
        let Some((slot, file_id)) = named.filter(|_| choice > 1) else {
            let name = self.next_name();
            let subject = Subject::Named(around.books.next_file());
            return self.open(&name, subject, CreateDisposition::CREATE, around);
        };
        let Subject::Named(number) = self.script.slots[&slot].subject else {
            unreachable!("only those were looked for");
        };
        let file = FileRef::Id(file_id);
        if choice == 2 {
            let step = set_info(file, FileInfoClass::DISPOSITION, vec![1]);
            return self.ask_for(step, Vec::new(), Intent::Delete { slot }, around);
        }
        let to = self.next_name();
        let name = utf16(&to);
        let rename = FileRenameInformation {
            is_replacing: false,
            root_directory: 0,
            name: Utf16(&name),
        };
        let mut buffer = Vec::new();
        rename.encode(&mut buffer);
        let intent = Intent::Rename {
            slot,
            file: number,
            to,
        };
        let step = set_info(file, FileInfoClass::RENAME, buffer);
        self.ask_for(step, Vec::new(), intent, around)
    }

    /// Locks or unlocks a byte, or waits for one.
    fn lock(&mut self, around: &mut Around<'_>) -> Check {
        let Some(rig) = &self.script.rig else {
            return self.make_rig(around);
        };
        let (slots, waiter, is_busy) = (rig.slots, rig.waiter, rig.is_busy);
        let is_open = |slot: &u64| {
            let slot = self.script.slots.get(slot);
            slot.is_some_and(|slot| slot.state == State::Open)
        };
        if is_busy || !slots.iter().all(is_open) {
            return self.read(around);
        }
        let choices = &mut self.script.choices;
        let mut slot = choices.pick(&slots);
        let mut byte = choices.index(LOCK_BYTES);
        let rig = self.script.rig.as_mut().expect("it was just seen");
        let attempt = match (rig.owners[byte], waiter) {
            (_, Some((_, awaited))) => {
                // The open that holds the byte unlocks it.
                byte = awaited;
                // The byte is unlocked, and the waiting request completes soon.
                let Some(owner) = rig.owners[byte] else {
                    return Ok(());
                };
                slot = owner;
                Attempt::Unlock
            }
            (None, _) => Attempt::Lock,
            (Some(owner), _) if owner == slot => Attempt::Unlock,
            (Some(_), None) if choices.per_mille(500) => Attempt::Wait,
            (Some(_), _) => Attempt::Try,
        };
        match attempt {
            Attempt::Wait => rig.waiter = Some((slot, byte)),
            _ => rig.is_busy = true,
        }
        self.lock_byte(slot, byte, attempt, around)
    }

    fn lock_byte(
        &mut self,
        slot: u64,
        byte: usize,
        attempt: Attempt,
        around: &mut Around<'_>,
    ) -> Check {
        let open = self.script.slots.get_mut(&slot).expect("it is open");
        let file = FileRef::Id(open.file_id);
        // [MS-SMB2] 2.2.26: 4 bits of number, an index from 1 to 64.
        let (index, number) = (open.sequence % 64 + 1, open.sequence / 64 % 16);
        open.sequence += 1;
        let flags = match attempt {
            Attempt::Lock | Attempt::Try => LockFlags::EXCLUSIVE_LOCK | LockFlags::FAIL_IMMEDIATELY,
            Attempt::Wait => LockFlags::EXCLUSIVE_LOCK,
            Attempt::Unlock => LockFlags::UNLOCK,
        };
        let element = LockElement {
            offset: byte as u64,
            length: 1,
            flags,
        };
        let step = Step::Lock {
            file,
            sequence: index << 4 | number,
            locks: vec![element],
        };
        let intent = Intent::Lock {
            slot,
            byte,
            attempt,
        };
        self.ask_for(step, Vec::new(), intent, around)
    }

    /// Opens a file twice, so that the session competes with itself for locks.
    fn make_rig(&mut self, around: &mut Around<'_>) -> Check {
        let file = around.books.next_file();
        let first = self.script.next_slot;
        self.script.rig = Some(Rig {
            slots: [first, first + 1],
            owners: [None; LOCK_BYTES],
            is_busy: false,
            waiter: None,
        });
        for _ in 0..2 {
            // The response may have arrived already, and may be a failure.
            if !self.script.is_of_rig(self.script.next_slot) {
                break;
            }
            let (subject, name) = (Subject::Lock(file), format!("lock-{file}"));
            self.open(&name, subject, CreateDisposition::OPEN_IF, around)?;
        }
        Ok(())
    }

    /// Closes an open that no later step needs; of the shared files, also an open in use.
    fn close_one(&mut self, around: &mut Around<'_>) -> Check {
        let rig = self.script.rig.as_ref().map(|rig| rig.slots);
        let of_rig: Vec<FileId> = (rig.iter().flatten())
            .filter_map(|slot| Some(self.script.slots.get(slot)?.file_id))
            .collect();
        let may_close = |slot: &Slot| {
            let is_of_all = matches!(slot.subject, Subject::Content(_));
            !of_rig.contains(&slot.file_id) && (is_of_all || slot.busy == 0)
        };
        match self.script.pick(may_close) {
            Some((slot, file_id)) => self.close(slot, file_id, around),
            None => self.peek(around),
        }
    }

    fn close(&mut self, slot: u64, file_id: FileId, around: &mut Around<'_>) -> Check {
        if self.script.is_of_rig(slot) {
            self.script.abandon_rig();
        }
        let open = self.script.slots.get_mut(&slot).expect("it was picked");
        open.state = State::Closing;
        let step = Step::Close {
            file: FileRef::Id(file_id),
            query: true,
        };
        self.ask_for(step, Vec::new(), Intent::Close { slot }, around)
    }

    /// Sends a request that changes nothing.
    fn ask(&mut self, around: &mut Around<'_>) -> Check {
        let Some((slot, file_id)) = self.script.pick(|_| true) else {
            return self.open_content(around);
        };
        let file = FileRef::Id(file_id);
        let step = match self.script.choices.below(3) {
            0 => Step::Flush(file),
            1 => Step::QueryInfo {
                file,
                info_type: InfoType::FILE,
                class: FileInfoClass::STANDARD.0,
                additional: 0,
                length: 4096,
            },
            _ => Step::Echo,
        };
        self.ask_for(step, Vec::new(), Intent::Ask { slot }, around)
    }
}

fn read(file: FileRef, cells: &std::ops::Range<u32>) -> Step {
    Step::Read {
        file,
        offset: u64::from(cells.start) * CELL as u64,
        length: (cells.end - cells.start) * CELL as u32,
        minimum: 0,
    }
}

fn zero(file: FileRef, cells: &std::ops::Range<u32>) -> Step {
    let request = ZeroData {
        file_offset: u64::from(cells.start) * CELL as u64,
        beyond_final_zero: u64::from(cells.end) * CELL as u64,
    };
    ioctl(file, CtlCode::SET_ZERO_DATA, request.encode())
}

fn ioctl(file: FileRef, code: CtlCode, input: Vec<u8>) -> Step {
    Step::Ioctl {
        file: Some(file),
        code,
        input,
        max_output: 4096,
    }
}

fn set_info(file: FileRef, class: FileInfoClass, buffer: Vec<u8>) -> Step {
    Step::SetInfo {
        file,
        info_type: InfoType::FILE,
        class: class.0,
        additional: 0,
        buffer,
    }
}

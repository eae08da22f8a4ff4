//! The operations of a client, chosen at random.

use wire::access::{AccessMask, CreateDisposition, CreateOptions, ShareAccess};
use wire::cursor::Put;
use wire::fscc::{FileInfoClass, FileRenameInformation};
use wire::fsctl::CtlCode;
use wire::query_info::InfoType;
use wire::text::utf16;
use wire::{FileId, Utf16};

use super::call::{Call, Intent, Move, Opening};
use super::{Client, Shared, Slot, State, cache};
use crate::check::contents::{CELL, CELLS, Stamp};

/// The names that all clients use. They are compared without regard to case.
pub(super) const NAMES: [&str; 9] = [
    "a",
    "b",
    "c",
    "longer name.txt",
    "d",
    "e",
    "d\\a",
    "d\\b",
    "e\\a",
];

/// The directories, and the files in them.
const LISTED: [&str; 5] = ["d", "e", "d\\a", "d\\b", "e\\a"];

/// Usual number of cells of one READ or WRITE.
const FEW: u64 = 6;
/// Number of cells in more than 64 KiB: such a request costs several credits.
const MANY: u32 = 140;

const ACCESSES: [AccessMask; 8] = [
    AccessMask::FILE_READ_DATA,
    AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_WRITE_DATA.0),
    AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_WRITE_DATA.0 | AccessMask::DELETE.0),
    AccessMask::FILE_READ_ATTRIBUTES,
    AccessMask(AccessMask::DELETE.0 | AccessMask::FILE_READ_ATTRIBUTES.0),
    AccessMask::MAXIMUM_ALLOWED,
    AccessMask::GENERIC_ALL,
    AccessMask(AccessMask::GENERIC_READ.0 | AccessMask::GENERIC_WRITE.0),
];

const DISPOSITIONS: [CreateDisposition; 8] = [
    CreateDisposition::SUPERSEDE,
    CreateDisposition::OPEN,
    CreateDisposition::OPEN,
    CreateDisposition::CREATE,
    CreateDisposition::OPEN_IF,
    CreateDisposition::OPEN_IF,
    CreateDisposition::OVERWRITE,
    CreateDisposition::OVERWRITE_IF,
];

impl Client {
    /// Starts an operation.
    pub(super) fn act(&mut self, shared: &mut Shared<'_>) {
        // With few credits left, requests more. No operation uses more than four.
        if !self.can_send(4) {
            if self.can_send(1) {
                self.submit(vec![Call::echo()], shared);
            }
            return;
        }
        self.quota -= 1;
        if self.choices.per_mille(shared.faults.mischief) {
            return self.mischief(shared);
        }
        if self.choices.per_mille(shared.scenario.leases) && self.use_cache(shared) {
            return;
        }
        if self.choices.per_mille(shared.scenario.posix / 5) {
            return self.change_a_name(shared);
        }
        if self.choices.per_mille(shared.scenario.crowd / 2) {
            return self.lock_or_unlock(shared);
        }
        match self.choices.below(100) {
            0..22 => self.create_one(shared),
            22..36 => self.write_some(shared),
            36..49 => self.read_some(shared),
            49..56 => self.copy_some(shared),
            56..63 => self.close_one(shared),
            63..74 => self.change_or_ask(shared),
            74..84 => self.lock_or_unlock(shared),
            84..89 => self.related(shared),
            89..93 => self.unrelated(shared),
            93..96 => self.cancel(shared),
            96 => self.submit(vec![Call::echo()], shared),
            97 => self.watch_one(shared),
            98 => self.change_tree(shared),
            _ => self.come_again(shared),
        }
    }

    fn come_again(&mut self, shared: &mut Shared<'_>) {
        match self.choices.below(2) {
            0 => self.log_off(shared),
            _ if self.initiator.is_none() => self.log_in(true, true, shared),
            _ => self.submit(vec![Call::echo()], shared),
        }
    }

    pub(super) fn create_one(&mut self, shared: &mut Shared<'_>) {
        if self.reuse_open(shared) {
            return;
        }
        let create = match self.choices.per_mille(shared.scenario.crowd) {
            true => self.join_the_crowd(shared),
            false => self.create(shared),
        };
        self.submit(vec![create], shared);
    }

    /// Returns a CREATE of the shared file.
    fn join_the_crowd(&mut self, shared: &mut Shared<'_>) -> Call {
        let access = AccessMask::FILE_READ_DATA | AccessMask::FILE_WRITE_DATA;
        let share = ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE;
        let how = (
            CreateDisposition::OPEN_IF,
            CreateOptions::NON_DIRECTORY_FILE,
        );
        self.opening(NAMES[0], (access, share), how, shared)
    }

    /// Returns a CREATE of a random name, and the slot for its open.
    fn create(&mut self, shared: &mut Shared<'_>) -> Call {
        let name = match shared.scenario.listings && self.choices.per_mille(800) {
            true => self.choices.pick(&LISTED),
            false => self.choices.pick(&NAMES),
        };
        let is_sure = shared.scenario.keeps_directories();
        let is_directory = matches!(name, "d" | "e") && (is_sure || !self.choices.per_mille(200));
        let mut options = match is_directory {
            true => CreateOptions::DIRECTORY_FILE,
            false => CreateOptions::NON_DIRECTORY_FILE,
        };
        let access = self.choices.pick(&ACCESSES);
        let may_delete = access.intersects(AccessMask::DELETE | AccessMask::GENERIC_ALL);
        let may_delete = may_delete && may_go(name, shared);
        if may_delete && self.choices.per_mille(200) {
            options |= CreateOptions::DELETE_ON_CLOSE;
        }
        let disposition = match is_directory {
            true => CreateDisposition::OPEN_IF,
            false => self.choices.pick(&DISPOSITIONS),
        };
        let generous = ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE;
        let share = match self.choices.per_mille(500) {
            true => generous,
            false => ShareAccess(self.choices.below(8) as u32),
        };
        self.opening(name, (access, share), (disposition, options), shared)
    }

    pub(super) fn opening(
        &mut self,
        name: &str,
        (access, share): (AccessMask, ShareAccess),
        (disposition, options): (CreateDisposition, CreateOptions),
        shared: &mut Shared<'_>,
    ) -> Call {
        let slot = self.next_slot;
        self.next_slot += 1;
        let (holder, asked) = self.ask_to_cache(name, slot, shared);
        let has_posix = self.agreed.is_some_and(|agreed| agreed.has_posix);
        let is_posix = has_posix && !self.choices.per_mille(100);
        let opening = Opening {
            slot,
            path: name.to_owned(),
            access,
            share,
            disposition,
            options,
            is_audit: self.audit.is_some(),
            asked,
            holder,
            is_posix,
        };
        self.new_slot(&opening);
        match !is_posix && self.choices.per_mille(200) {
            true => Call::create(&name.to_uppercase(), opening),
            false => Call::create(name, opening),
        }
    }

    /// Returns one of the opens of this client. Where a cache has newer data than the server, the
    /// client does not bypass it.
    pub(super) fn pick_open(&mut self, shared: &Shared<'_>) -> Option<(u64, FileId)> {
        let opens = self.slots.iter().filter(|(_, slot)| {
            let is_used = slot.state == State::Open && !slot.is_idle;
            is_used && !shared.caching.is_dirty(slot.holder)
        });
        let opens: Vec<(u64, FileId)> = opens
            .map(|(number, slot)| (*number, slot.file_id))
            .collect();
        match opens.is_empty() {
            true => None,
            false => Some(self.choices.pick(&opens)),
        }
    }

    fn some_cells(&mut self) -> std::ops::Range<u32> {
        let count = match self.choices.per_mille(40) {
            true => MANY,
            false => 1 + self.choices.below(FEW) as u32,
        };
        let start = match self.choices.per_mille(100) {
            true => self.choices.below(u64::from(CELLS - MANY)) as u32,
            false => self.choices.below(8) as u32,
        };
        start..start + self.affordable(count)
    }

    /// Without large MTU, a request carries at most 64 KiB.
    fn affordable(&self, cells: u32) -> u32 {
        let has_large_mtu = self.agreed.is_some_and(|agreed| agreed.has_large_mtu);
        match has_large_mtu {
            true => cells,
            false => cells.min(65_536 / CELL as u32),
        }
    }

    pub(super) fn next_stamp(&mut self) -> Stamp {
        self.next_stamp += 1;
        Stamp::of(self.user, (self.id as u64) << 32 | self.next_stamp)
    }

    fn write_some(&mut self, shared: &mut Shared<'_>) {
        let Some((slot, file_id)) = self.pick_open(shared) else {
            return self.create_one(shared);
        };
        let (cells, stamp) = (self.some_cells(), self.next_stamp());
        let write = match self.way(shared) {
            None => Call::write(slot, file_id, cells, stamp),
            Some(way) => self.write_by_rdma(way, (slot, file_id), (cells, stamp), shared),
        };
        self.submit(vec![write], shared);
    }

    fn read_some(&mut self, shared: &mut Shared<'_>) {
        let Some((slot, file_id)) = self.pick_open(shared) else {
            return self.create_one(shared);
        };
        let cells = self.some_cells();
        let read = match self.way(shared) {
            None => Call::read(slot, file_id, cells),
            Some(way) => self.read_by_rdma(way, (slot, file_id), cells, shared),
        };
        self.submit(vec![read], shared);
    }

    /// Copies between an open with a known resume key and another open, or within it; usually
    /// requests a resume key first.
    fn copy_some(&mut self, shared: &mut Shared<'_>) {
        let Some(target) = self.pick_open(shared) else {
            return self.create_one(shared);
        };
        let known = |slot: &Slot| Some((slot.key?, slot.resume_key?));
        let clean = self.slots.values();
        let clean = clean.filter(|slot| !shared.caching.is_dirty(slot.holder));
        let known: Vec<_> = clean.filter_map(known).collect();
        if known.is_empty() || self.choices.per_mille(100) {
            return self.submit(vec![Call::key(target.0, target.1)], shared);
        }
        let source = self.choices.pick(&known);
        let code = match self.choices.per_mille(300) {
            true => CtlCode::SRV_COPYCHUNK,
            false => CtlCode::SRV_COPYCHUNK_WRITE,
        };
        let count = 1 + self.choices.below(2);
        let moves: Vec<Move> = (0..count).map(|_| self.some_move()).collect();
        let copy = Call::copy(source, target, code, &moves);
        self.submit(vec![copy], shared);
    }

    fn some_move(&mut self) -> Move {
        let length = 1 + self.choices.below(FEW / 2) as u32;
        let (from, to) = (self.choices.below(4) as u32, self.choices.below(8) as u32);
        Move {
            from,
            to: to..to + length,
        }
    }

    /// Watches a directory.
    fn watch_one(&mut self, shared: &mut Shared<'_>) {
        let Some((_, file_id)) = self.pick_open(shared) else {
            return self.create_one(shared);
        };
        let is_tree = self.choices.per_mille(500);
        let max_len = self.choices.pick(&[0, 64, 4096]);
        self.submit(vec![Call::change_notify(file_id, is_tree, max_len)], shared);
    }

    fn close_one(&mut self, shared: &mut Shared<'_>) {
        let Some((slot, file_id)) = self.pick_open(shared) else {
            return self.create_one(shared);
        };
        self.is_closing(slot, shared);
        let wants_attributes = self.choices.per_mille(500);
        self.submit(vec![Call::close(slot, file_id, wants_attributes)], shared);
    }

    pub(super) fn is_closing(&mut self, slot: u64, shared: &mut Shared<'_>) {
        if let Some(slot) = self.slots.get_mut(&slot) {
            slot.state = State::Closing;
        }
        shared.opens.closing((self.id, slot));
        shared.locks.closing((self.id, slot));
        cache::leave((self.id, slot), shared);
    }

    fn change_or_ask(&mut self, shared: &mut Shared<'_>) {
        let Some((slot, file_id)) = self.pick_open(shared) else {
            return self.create_one(shared);
        };
        let call = match self.choices.below(11) {
            0 => Call::flush(file_id),
            1 | 2 if !self.may_move(slot, shared) => Call::flush(file_id),
            1 => self.rename(slot, file_id, shared),
            2 => self.delete(slot, file_id, shared),
            3 => self.cut(slot, file_id, FileInfoClass::END_OF_FILE),
            4 => self.cut(slot, file_id, FileInfoClass::ALLOCATION),
            5 => {
                let class = self
                    .choices
                    .pick(&[4, 5, 6, 7, 9, 14, 16, 18, 22, 34, 35, 59, 77]);
                let max_len = self.choices.pick(&[0, 8, 104, 4096, 65_536]);
                Call::query_info(file_id, InfoType::FILE, class, max_len)
            }
            6 => {
                let class = self.choices.pick(&[1, 3, 4, 5, 7, 8, 11, 99]);
                Call::query_info(file_id, InfoType::FILESYSTEM, class, 4096)
            }
            7 => Call::query_info(file_id, InfoType::SECURITY, 0, 4096),
            8 => Call::zero(slot, file_id, self.some_cells()),
            9 => self.sparse(file_id),
            _ => self.list(file_id),
        };
        self.submit(vec![call], shared);
    }

    /// Sets or clears SPARSE, or queries the allocated ranges.
    fn sparse(&mut self, file_id: FileId) -> Call {
        match self.choices.below(3) {
            2 => {
                let mut input = Vec::new();
                input.put_u64(0);
                input.put_u64(u64::from(CELLS) * CELL as u64);
                let code = CtlCode::QUERY_ALLOCATED_RANGES;
                Call::ioctl(Intent::Any, code, file_id, &input)
            }
            is_sparse => {
                let input = [is_sparse as u8];
                Call::ioctl(Intent::Any, CtlCode::SET_SPARSE, file_id, &input)
            }
        }
    }

    fn list(&mut self, file_id: FileId) -> Call {
        let class = self.choices.pick(&[1, 2, 3, 12, 37, 38]);
        let flags = self.choices.pick(&[0, 1, 2, 3, 0x10]);
        let pattern = self
            .choices
            .pick(&["*", "?", "a*", "a", "<.txt", "nothing"]);
        Call::query_directory(file_id, class, flags, pattern)
    }

    /// Whether the client may rename or delete the file of an open.
    pub(super) fn may_move(&self, slot: u64, shared: &Shared<'_>) -> bool {
        let slot = self.slots.get(&slot);
        slot.is_none_or(|slot| may_go(&slot.path, shared))
    }

    pub(super) fn rename(&mut self, slot: u64, file_id: FileId, shared: &Shared<'_>) -> Call {
        let to = match shared.scenario.listings {
            true => self.choices.pick(&LISTED[2..]),
            false => self.choices.pick(&NAMES),
        };
        let open = self.slots.get(&slot);
        let name = match open.is_some_and(|open| open.is_posix) {
            true => utf16(&to.replace('\\', "/")),
            false => utf16(to),
        };
        let rename = FileRenameInformation {
            is_replacing: self.choices.per_mille(500),
            root_directory: 0,
            name: Utf16(&name),
        };
        let mut buffer = Vec::new();
        rename.encode(&mut buffer);
        Call::set_info(
            Intent::Rename {
                slot,
                key: open.and_then(|open| open.key),
                to: to.to_owned(),
            },
            file_id,
            FileInfoClass::RENAME,
            &buffer,
        )
    }

    /// Truncates the file: this has the effect of a write of zeros after the new end.
    fn cut(&mut self, slot: u64, file_id: FileId, class: FileInfoClass) -> Call {
        let end = self.choices.below(12) as u32;
        let mut buffer = Vec::new();
        buffer.put_u64(u64::from(end) * CELL as u64);
        let intent = Intent::Write {
            slot,
            cells: end..CELLS,
            stamp: Stamp::default(),
        };
        Call::set_info(intent, file_id, class, &buffer)
    }

    /// A compound in which the members use the open of the first member.
    fn related(&mut self, shared: &mut Shared<'_>) {
        let create = self.create(shared);
        let Intent::Create(Opening { slot, .. }) = create.intent else {
            unreachable!("a create creates");
        };
        let all = FileId::RELATED;
        let cells = 0..1 + self.choices.below(FEW) as u32;
        let middle = match self.choices.below(4) {
            0 => Call::write(slot, all, cells, self.next_stamp()),
            1 => Call::read(slot, all, cells),
            2 => self.list(all),
            _ => Call::query_info(all, InfoType::FILE, FileInfoClass::ALL.0, 4096),
        };
        let mut calls = vec![create, middle];
        if self.choices.per_mille(800) {
            // The server closes the open before the client receives its response.
            self.is_closing(slot, shared);
            calls.push(Call::close(slot, all, false));
        }
        for call in &mut calls[1..] {
            call.is_related = true;
        }
        self.submit(calls, shared);
    }

    /// A compound with unrelated members.
    fn unrelated(&mut self, shared: &mut Shared<'_>) {
        let mut calls = vec![Call::echo()];
        if let Some((slot, file_id)) = self.pick_open(shared) {
            let stamp = self.next_stamp();
            calls.push(Call::write(slot, file_id, 0..2, stamp));
            calls.push(Call::read(slot, file_id, 1..3));
        }
        calls.push(self.create(shared));
        self.submit(calls, shared);
    }
}

/// Whether a name may be renamed or deleted. Directories stay while clients cache their listings,
/// and while names are checked.
fn may_go(name: &str, shared: &Shared<'_>) -> bool {
    !shared.scenario.keeps_directories() || !matches!(name, "d" | "e")
}

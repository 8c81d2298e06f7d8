//! Pages of the file, read ahead while that pays.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::Unreadable;

/// Most bytes that are read at once: with all slots filled, what a processor keeps close to itself.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Blocks that are kept. A pass over a table is in several places at once: in the leaves, in the chains that begin there, in the pages above.
const SLOTS: usize = 4;

/// Blocks that are let go before their size is judged.
const JUDGED_BLOCKS: u32 = 16;

/// Neighbouring pages are read in one call: twice as many where more than half of them were used, half as many where less than a
/// quarter was, so that a table whose pages are scattered does not cost its neighbours' bytes.
pub(super) struct Blocks<'a> {
    file: &'a File,
    page_bytes: usize,
    /// Pages of a block, a power of two.
    size: u32,
    slots: [Slot; SLOTS],
    /// Counts uses.
    clock: u64,
    /// Blocks that were let go since the last judgement, and their pages.
    gone: u32,
    gone_pages: u64,
    gone_used: u64,
}

/// One block.
#[derive(Default)]
struct Slot {
    pages: Vec<u8>,
    /// Pages before the first one.
    before: u32,
    held: u32,
    used: u32,
    last_use: u64,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(file: &'a File, page_bytes: usize) -> Self {
        let slots = std::array::from_fn(|_| Slot::default());
        Self { file, page_bytes, size: 1, slots, clock: 0, gone: 0, gone_pages: 0, gone_used: 0 }
    }

    /// Whole pages in the file.
    pub(super) fn count(&self) -> Result<u32, Unreadable> {
        let bytes = self.file.metadata().map_err(|_| Unreadable)?.len();
        u32::try_from(bytes / self.page_bytes as u64).map_err(|_| Unreadable)
    }

    /// Drops what was read ahead.
    pub(super) fn forget(&mut self) {
        for slot in &mut self.slots {
            (slot.held, slot.used, slot.last_use) = (0, 0, 0);
        }
    }

    /// The page of that number, from 1.
    pub(super) fn page(&mut self, number: u32) -> Result<&[u8], Unreadable> {
        let index = number.checked_sub(1).ok_or(Unreadable)?;
        self.clock += 1;
        let holds = |slot: &Slot| index >= slot.before && index - slot.before < slot.held;
        let at = match self.slots.iter().position(holds) {
            Some(at) => at,
            None => self.read(index)?,
        };
        let slot = &mut self.slots[at];
        slot.used += 1;
        slot.last_use = self.clock;
        let start = (index - slot.before) as usize * self.page_bytes;
        slot.pages.get(start..start + self.page_bytes).ok_or(Unreadable)
    }

    /// Reads the block of a page into the slot that was used longest ago.
    fn read(&mut self, index: u32) -> Result<usize, Unreadable> {
        let at = (0..SLOTS).min_by_key(|at| self.slots[*at].last_use).unwrap_or(0);
        self.judge(at);
        let before = index & !(self.size - 1);
        let slot = &mut self.slots[at];
        (slot.held, slot.used) = (0, 0);
        slot.pages.resize(self.size as usize * self.page_bytes, 0);
        let needed = (index - before + 1) as usize * self.page_bytes;
        let mut filled = 0;
        while filled < needed {
            let offset = u64::from(before) * self.page_bytes as u64 + filled as u64;
            match self.file.read_at(&mut slot.pages[filled..], offset) {
                Ok(0) => return Err(Unreadable),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Unreadable),
            }
        }
        slot.before = before;
        slot.held = u32::try_from(filled / self.page_bytes).map_err(|_| Unreadable)?;
        Ok(at)
    }

    /// Counts how a block was used that is let go, and now and then says how large the next ones are.
    fn judge(&mut self, at: usize) {
        let slot = &self.slots[at];
        if slot.held == 0 {
            return;
        }
        self.gone += 1;
        self.gone_pages += u64::from(slot.held);
        self.gone_used += u64::from(slot.used.min(slot.held));
        if self.gone < JUDGED_BLOCKS {
            return;
        }
        let most = u32::try_from((BLOCK_BYTES_MAX / self.page_bytes).max(1)).unwrap_or(1);
        if self.gone_used * 2 > self.gone_pages {
            self.size = (self.size * 2).min(most);
        } else if self.gone_used * 4 < self.gone_pages {
            self.size = (self.size / 2).max(1);
        }
        (self.gone, self.gone_pages, self.gone_used) = (0, 0, 0);
    }
}

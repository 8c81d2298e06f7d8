//! The look into `/proc` (proc(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Coverage, Held, HeldFile, Targets};
use crate::open::FileId;

/// Longest program name kept, in characters.
const COMMAND_CHARS_MAX: usize = 64;

pub(super) fn seek(targets: &Targets) -> (BTreeMap<u32, Held>, Coverage) {
    let Ok(processes) = fs::read_dir("/proc") else { return (BTreeMap::new(), Coverage::Unknown) };
    let mut found = BTreeMap::new();
    let mut hidden_processes = 0;
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        match look_at(&process.path(), targets) {
            Ok(Some(held)) => {
                found.insert(pid, held);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => hidden_processes += 1,
            // An error here means that it ended meanwhile.
            Ok(None) | Err(_) => {}
        }
    }
    let coverage =
        if hidden_processes == 0 { Coverage::Complete } else { Coverage::Partial { hidden_processes } };
    (found, coverage)
}

fn look_at(process: &Path, targets: &Targets) -> io::Result<Option<Held>> {
    let mut held = Held::default();
    for descriptor in fs::read_dir(process.join("fd"))? {
        let link = descriptor?.path();
        let Ok(metadata) = fs::metadata(&link) else { continue };
        let id = FileId { device: metadata.dev(), inode: metadata.ino() };
        if let Some(file) = targets.ids.get(&id) {
            held.files.push(*file);
        } else if metadata.is_file() && metadata.nlink() == 0 {
            let name = fs::read_link(&link)?;
            held.add_deleted(targets.deleted(&name.to_string_lossy()));
        }
    }
    look_at_mappings(process, targets, &mut held)?;
    if held.files.is_empty() {
        return Ok(None);
    }
    held.command = command(process);
    Ok(Some(held))
}

impl Held {
    fn add_deleted(&mut self, file: Option<HeldFile>) {
        if let Some(file) = file {
            self.files.push(file);
            self.deleted = true;
        }
    }
}

/// A mapping outlives its descriptor, so it is looked for as well.
fn look_at_mappings(process: &Path, targets: &Targets, held: &mut Held) -> io::Result<()> {
    for line in BufReader::new(fs::File::open(process.join("maps"))?).split(b'\n') {
        let line = line?;
        let Some((id, name)) = parse_mapping(&String::from_utf8_lossy(&line)) else { continue };
        match targets.ids.get(&id) {
            Some(file) => held.files.push(*file),
            None => held.add_deleted(targets.deleted(&name)),
        }
    }
    Ok(())
}

/// `7f00-7f01 rw-s 00000000 08:01 131    /path`: newlines in the path are written `\012`, and nothing else is escaped.
fn parse_mapping(line: &str) -> Option<(FileId, String)> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start_matches(' ').split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (_, _, _) = (word()?, word()?, word()?);
    let (major, minor) = word()?.split_once(':')?;
    let inode = word()?.parse().ok()?;
    let hex = |text| u32::from_str_radix(text, 16).ok();
    let device = rustix::fs::makedev(hex(major)?, hex(minor)?);
    let name = rest.trim_start_matches(' ').replace("\\012", "\n");
    (!name.is_empty()).then_some((FileId { device, inode }, name))
}

fn command(process: &Path) -> String {
    let executable = fs::read_link(process.join("exe")).ok();
    let name =
        executable.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = name.or_else(|| fs::read_to_string(process.join("comm")).ok()).unwrap_or_default();
    let name = name.trim_end_matches('\n').trim_end_matches(" (deleted)");
    name.chars().map(|c| if c.is_control() { '?' } else { c }).take(COMMAND_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_with_spaces_and_newlines_in_names() {
        let line = "7f2c00000000-7f2c00008000 rw-s 00000000 fe:00 4711                       /a b/x\\012y.db-shm (deleted)";
        let (id, name) = parse_mapping(line).unwrap();
        assert_eq!(id, FileId { device: rustix::fs::makedev(0xfe, 0), inode: 4711 });
        assert_eq!(name, "/a b/x\ny.db-shm (deleted)");
        assert_eq!(parse_mapping("7ffc0000-7ffc1000 rw-p 00000000 00:00 0 "), None);
    }
}

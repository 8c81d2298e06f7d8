//! Owner, mode and extended attributes (access lists among them) of the file that is replaced.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Gid, Uid, XattrFlags};

/// Gives `new` the owner, mode and extended attributes of the file at `old`, which is not opened.
pub(crate) fn copy(old: &Path, new: &File) -> io::Result<()> {
    let (wanted, found) = (fs::metadata(old)?, new.metadata()?);
    if (wanted.uid(), wanted.gid()) != (found.uid(), found.gid()) {
        rustix::fs::fchown(new, Some(Uid::from_raw(wanted.uid())), Some(Gid::from_raw(wanted.gid())))?;
    }
    // After the owner: a change of owner clears some bits of the mode.
    new.set_permissions(Permissions::from_mode(wanted.mode() & 0o7777))?;
    copy_extended(old, new)
}

#[cfg(target_os = "linux")]
fn copy_extended(old: &Path, new: &File) -> io::Result<()> {
    let mut names = vec![0_u8; 64 << 10];
    let length = match rustix::fs::listxattr(old, &mut names[..]) {
        Ok(length) => length,
        Err(rustix::io::Errno::NOTSUP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0_u8; 64 << 10];
        let copied = rustix::fs::getxattr(old, name, &mut value[..])
            .and_then(|length| rustix::fs::fsetxattr(new, name, &value[..length], XattrFlags::empty()));
        match copied {
            // Attributes that the system sets by itself (security labels) cannot be set by everybody.
            Ok(()) | Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn copy_extended(_: &Path, _: &File) -> io::Result<()> {
    Ok(())
}

//! Compression of files by the file system (btrfs): the flag FS_COMPR_FL, which is the attribute
//! COMPRESSED.

use std::os::fd::OwnedFd;

use rustix::fs::{
    CWD, IFlags, Mode, OFlags, StatxAttributes, ioctl_getflags, ioctl_setflags, openat,
};
use rustix::io::Errno;
use wire::Status;
use wire::access::FileAttributes;

use super::file::OpenFile;
use super::stat::{Stat, as_server, by_descriptor, stat, supports_attributes};
use crate::Step;
use crate::errno::{Context, status};

/// COMPRESSED, if the file system compresses the file.
pub(super) fn attribute(stat: &Stat) -> FileAttributes {
    let is_compressed = stat.0.stx_attributes.contains(StatxAttributes::COMPRESSED);
    match is_compressed {
        true => FileAttributes::COMPRESSED,
        false => FileAttributes::NONE,
    }
}

/// Switches the compression of later writes on or off. The core has checked the right.
pub(super) fn set(file: &OpenFile, is_compressed: bool) -> Step<()> {
    let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Attributes))?;
    let is = attribute(&stat) == FileAttributes::COMPRESSED;
    if is == is_compressed {
        return Ok(());
    }
    if !file.volume.compresses || !supports_attributes(&stat) {
        return Err(Status::NOT_SUPPORTED.into());
    }
    let change = || match file.is_path {
        true => change_flags(&reopened(&file.fd)?, is_compressed),
        false => change_flags(&file.fd, is_compressed),
    };
    let result = match change() {
        Err(Errno::ACCESS | Errno::PERM) => as_server(&file.token, change),
        result => result,
    };
    result.map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL => Status::NOT_SUPPORTED,
        errno => status(errno, Context::Attributes),
    })?;
    Ok(())
}

fn change_flags(fd: &OwnedFd, is_compressed: bool) -> Result<(), Errno> {
    let flags = ioctl_getflags(fd)?;
    let flags = match is_compressed {
        true => (flags | IFlags::COMPRESSED) - IFlags::from_bits_retain(FS_NOCOMP_FL),
        false => flags - IFlags::COMPRESSED,
    };
    ioctl_setflags(fd, flags)
}

/// FS_NOCOMP_FL of linux/fs.h: the file system found that the data do not compress.
const FS_NOCOMP_FL: u32 = 0x0000_0400;

/// A descriptor that accepts ioctl(2), unlike one with O_PATH.
fn reopened(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(CWD, by_descriptor(fd), flags, Mode::empty())
}

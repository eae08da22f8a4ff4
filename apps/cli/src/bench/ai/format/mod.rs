//! Files with samples: how a generator writes them, and how a reader checks them.
//!
//! The content is incompressible and differs from file to file. DLIO, NumPy, TensorFlow and Pillow
//! read these files.

mod content;
mod jpeg;
mod npz;
pub(crate) mod tfrecord;

use anyhow::Result;

use super::workload::{Data, Format};

/// Makes the content of the file with this number in `out`, which keeps its capacity.
pub(crate) fn build(data: &Data, number: u64, dimensions: [u64; 2], out: &mut Vec<u8>) {
    out.clear();
    match data.format {
        Format::Npz => npz::build(number, dimensions, out),
        Format::Tfrecord => tfrecord::build(number, data.samples_per_file, dimensions, out),
        Format::Jpeg => jpeg::build(number, dimensions, out),
    }
}

/// Checks the bytes of a whole file, or of whole records for TFRecord: structure and checksums.
///
/// # Errors
/// The file is truncated or has wrong bytes.
pub(crate) fn check(format: Format, bytes: &[u8]) -> Result<()> {
    match format {
        Format::Npz => npz::check(bytes),
        Format::Tfrecord => tfrecord::check(bytes),
        Format::Jpeg => jpeg::check(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::Workload;
    use super::*;

    fn small(workload: Workload) -> Data {
        Data {
            samples_per_file: workload.data().samples_per_file.min(3),
            ..workload.data()
        }
    }

    #[test]
    fn every_format_passes_its_own_check() {
        for workload in [Workload::Unet3d, Workload::Resnet50, Workload::Retinanet] {
            let data = small(workload);
            let mut file = Vec::new();
            build(&data, 7, [40, 50], &mut file);
            check(data.format, &file).expect("a whole file");
            assert!(
                check(data.format, &file[..file.len() - 3]).is_err(),
                "{workload:?}"
            );
            let mut other = Vec::new();
            build(&data, 8, [40, 50], &mut other);
            assert!(file != other && file.len() == other.len(), "{workload:?}");
        }
    }

    #[test]
    fn a_changed_byte_of_a_sample_is_found() {
        for workload in [Workload::Unet3d, Workload::Resnet50] {
            let data = small(workload);
            let mut file = Vec::new();
            build(&data, 7, [40, 50], &mut file);
            file[1000] ^= 1;
            assert!(check(data.format, &file).is_err(), "{workload:?}");
        }
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic() {
        for format in [Format::Npz, Format::Tfrecord, Format::Jpeg] {
            for len in 0..200 {
                let bytes: Vec<u8> = (0..len).map(|at: u32| (at * 37) as u8).collect();
                let _ = check(format, &bytes);
                let _ = check(format, &vec![0xFF; len as usize]);
            }
        }
    }
}

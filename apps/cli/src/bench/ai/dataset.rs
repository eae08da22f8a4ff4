//! The files of a data set: their names, which are those of DLIO, and the samples in them.

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::datasize::subdirectories;
use super::format::tfrecord;
use super::sizes::Dimensions;
use super::store::{Extent, Store};
use super::workload::{Data, Format, Workload};

/// The file that describes a generated data set. It is beside the directory `train`.
const DESCRIPTION: &str = "smbeam-dataset.json";
/// Version of that file.
const VERSION: u32 = 1;
/// Largest number of files of a data set.
const FILES_MAX: usize = 50_000_000;

/// The names of the files of a data set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) workload: Workload,
    pub(crate) files: u64,
}

impl Layout {
    /// The directories of the files.
    pub(crate) fn directories(self) -> Vec<String> {
        let train = train_directory(self.workload);
        match subdirectories(self.files) {
            0 => vec![train],
            count => {
                let numbers = (0..count).map(|number| padded(number, count));
                numbers.map(|number| format!("{train}/{number}")).collect()
            }
        }
    }

    /// The path of the file with this number.
    pub(crate) fn path(self, number: u64) -> String {
        let Self { workload, files } = self;
        let directory = match subdirectories(files) {
            0 => String::new(),
            count => format!("{}/", padded(number % count, count)),
        };
        format!(
            "{}/{directory}img_{}_of_{files}.{}",
            train_directory(workload),
            padded(number, files),
            workload.data().format.ending()
        )
    }
}

fn train_directory(workload: Workload) -> String {
    format!("{}/train", workload.name())
}

/// A number with as many digits as `count`.
fn padded(number: u64, count: u64) -> String {
    let width = count.to_string().len();
    format!("{number:0width$}")
}

/// The description of a generated data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    version: u32,
    pub(crate) workload: Workload,
    /// Length of the samples relative to that of the workload.
    pub(crate) scale: f64,
    pub(crate) files: u64,
}

impl Description {
    pub(crate) fn new(layout: Layout, scale: f64) -> Self {
        Self {
            version: VERSION,
            workload: layout.workload,
            scale,
            files: layout.files,
        }
    }

    /// Writes the description into the store.
    pub(crate) fn save(&self, store: &Store) -> Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        store.write(&Self::path(self.workload), text, 0).map(drop)
    }

    fn load(store: &Store, workload: Workload) -> Result<Option<Self>> {
        let path = Self::path(workload);
        let Some(text) = store.read_small(&path)? else {
            return Ok(None);
        };
        let description: Self = serde_json::from_slice(&text).with_context(|| path.clone())?;
        ensure!(
            description.version == VERSION,
            "{path}: unknown version {}",
            description.version
        );
        Ok(Some(description))
    }

    fn path(workload: Workload) -> String {
        format!("{}/{DESCRIPTION}", workload.name())
    }
}

/// A file of a data set.
#[derive(Clone, Debug)]
struct DataFile {
    path: String,
    bytes: u64,
}

/// An existing data set.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    /// The form of the data, at the scale of the files.
    pub(crate) data: Data,
    pub(crate) scale: f64,
    files: Vec<DataFile>,
}

impl Dataset {
    /// Finds the files of a workload. `scale` is needed for files that another program generated.
    ///
    /// # Errors
    /// There are no files, or they have another scale.
    pub(crate) fn find(store: &Store, workload: Workload, scale: Option<f64>) -> Result<Self> {
        let description = Description::load(store, workload)?;
        let scale = match (scale, description) {
            (Some(wanted), Some(description)) if wanted != description.scale => bail!(
                "the data set has the scale {}, not {wanted}",
                description.scale
            ),
            (_, Some(description)) => description.scale,
            (wanted, None) => wanted.unwrap_or(1.0),
        };
        let data = workload.data().scaled(scale);
        let mut files = list(store, &train_directory(workload), data.format)?;
        ensure!(
            !files.is_empty(),
            "no {} files in {}: run `smbeam bench ai datagen` first",
            data.format.ending(),
            train_directory(workload)
        );
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { data, scale, files })
    }

    /// The number of files.
    pub(crate) fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The parts of files that the samples `first..first + count` need.
    pub(crate) fn extents(&self, first: u64, count: u64) -> Vec<Extent<'_>> {
        let per_file = self.data.samples_per_file;
        let mut extents = Vec::new();
        let mut sample = first;
        while sample < first + count {
            let file = &self.files[(sample / per_file) as usize];
            let within = sample % per_file;
            let taken = (per_file - within).min(first + count - sample);
            let record = file.bytes / per_file;
            extents.push(Extent {
                path: &file.path,
                file_bytes: file.bytes,
                range: (per_file > 1).then(|| within * record..(within + taken) * record),
            });
            sample += taken;
        }
        extents
    }

    /// Fails unless each file has the length that its samples need.
    pub(crate) fn check_lengths(&self) -> Result<()> {
        if self.data.format != Format::Tfrecord {
            return Ok(());
        }
        let dimensions = Dimensions::of(self.data)
            .next()
            .expect("an endless sequence");
        let expected = self.data.samples_per_file * tfrecord::record_bytes(dimensions) as u64;
        let wrong = self.files.iter().find(|file| file.bytes != expected);
        match wrong {
            Some(file) => bail!("{} has {} bytes, not {expected}", file.path, file.bytes),
            None => Ok(()),
        }
    }
}

/// The files with the ending of `format` in a directory and its subdirectories.
fn list(store: &Store, directory: &str, format: Format) -> Result<Vec<DataFile>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in store.list(&directory)? {
            let path = format!("{directory}/{}", entry.name);
            if entry.is_directory && entry.name != "." && entry.name != ".." {
                directories.push(path);
            } else if path.ends_with(&format!(".{}", format.ending())) {
                ensure!(files.len() < FILES_MAX, "more than {FILES_MAX} files");
                let bytes = entry.size;
                files.push(DataFile { path, bytes });
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
pub(crate) fn example(data: Data, sizes: &[u64]) -> Dataset {
    let files = sizes.iter().enumerate().map(|(number, bytes)| DataFile {
        path: number.to_string(),
        bytes: *bytes,
    });
    Dataset {
        data,
        scale: 1.0,
        files: files.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_dlio() {
        let workload = Workload::Unet3d;
        let few = Layout {
            workload,
            files: 56,
        };
        assert_eq!(few.path(7), "unet3d/train/img_07_of_56.npz");
        assert_eq!(few.directories(), ["unet3d/train"]);
        let workload = Workload::Retinanet;
        let many = Layout {
            workload,
            files: 105_000,
        };
        assert_eq!(
            many.path(13),
            "retinanet/train/02/img_000013_of_105000.jpeg"
        );
        assert_eq!(many.directories().len(), 11);
        assert_eq!(many.directories()[10], "retinanet/train/10");
    }

    #[test]
    fn a_batch_of_records_is_one_or_two_ranges() {
        let data = Data {
            samples_per_file: 10,
            ..Workload::Resnet50.data()
        };
        let dataset = example(data, &[1000, 1000, 1000]);
        let ranges = |first, count| -> Vec<_> {
            let extents = dataset.extents(first, count).into_iter();
            extents
                .map(|it| (it.path, it.range.expect("a range")))
                .collect()
        };
        assert_eq!(ranges(2, 4), [("0", 200..600)]);
        assert_eq!(ranges(8, 4), [("0", 800..1000), ("1", 0..200)]);
    }

    #[test]
    fn a_batch_of_files_is_whole_files() {
        let dataset = example(Workload::Unet3d.data(), &[5, 6, 7]);
        let extents = dataset.extents(1, 2);
        let files: Vec<_> = extents.iter().map(|it| (it.path, it.file_bytes)).collect();
        assert_eq!(files, [("1", 6), ("2", 7)]);
        assert!(extents.iter().all(|extent| extent.range.is_none()));
        assert_eq!((dataset.files(), dataset.bytes()), (3, 18));
    }
}

//! Generation of a data set.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow};

use super::dataset::{Description, Layout};
use super::format;
use super::live::Live;
use super::sizes::Dimensions;
use super::store::Store;
use crate::mutex::lock;

/// The generated data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Generated {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// Generates the files of `layout` with `jobs` threads. Existing files of the same name are
/// replaced.
///
/// # Errors
/// The store is full, or fails.
pub(crate) fn generate(store: &Store, layout: Layout, scale: f64, jobs: u32) -> Result<Generated> {
    let started = Instant::now();
    for directory in layout.directories() {
        store.create_dir(&directory)?;
    }
    let data = layout.workload.data().scaled(scale);
    let queue = Mutex::new((0..layout.files).zip(Dimensions::of(data)));
    let live = Live::new(layout.files, "files");
    let is_failed = AtomicBool::new(false);
    let work = |session: usize| -> Result<()> {
        let mut buffer = Vec::new();
        while !is_failed.load(Ordering::Relaxed) {
            let Some((number, dimensions)) = lock(&queue).next() else {
                break;
            };
            format::build(&data, number, dimensions, &mut buffer);
            let len = buffer.len() as u64;
            let written = store.write(&layout.path(number), buffer, session);
            buffer = written.inspect_err(|_| is_failed.store(true, Ordering::Relaxed))?;
            live.add(1, len);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let work = &work;
        let _shown = live.show(scope);
        let workers = (0..jobs as usize).map(|job| scope.spawn(move || work(job)));
        let workers: Vec<_> = workers.collect();
        let results = workers.into_iter().map(|worker| {
            let panicked = |_| anyhow!("a thread of the generator panicked");
            worker.join().map_err(panicked)?
        });
        let results: Vec<Result<()>> = results.collect();
        results.into_iter().collect::<Result<()>>()
    })?;
    Description::new(layout, scale).save(store)?;
    let (files, bytes) = live.so_far();
    Ok(Generated {
        files,
        bytes,
        seconds: started.elapsed().as_secs_f64(),
    })
}

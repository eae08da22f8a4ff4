//! The compiled module `smbeam._smbeam` of the Python package: operations of the client as objects
//! that a thread waits for or an event loop awaits. The modules in `python/smbeam` make the
//! interface for users of them.

mod background;
mod connect;
mod entry;
mod error;
mod event_loop;
mod file;
mod listing;
mod memory;
mod mode;
mod pending;
mod per_process;
mod read_many;
mod sessions;
mod share;
mod target;
mod transfer;
mod watch;
mod work;

use pyo3::prelude::*;

use crate::pending::Pending;

/// Logs off from all servers.
#[pyfunction]
fn close_all() -> Pending {
    Pending::of_nothing(sessions::close_all())
}

#[pymodule]
fn _smbeam(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<entry::Entry>()?;
    module.add_class::<event_loop::EventLoop>()?;
    module.add_class::<file::RawFile>()?;
    module.add_class::<Pending>()?;
    module.add_class::<share::RawShare>()?;
    module.add_class::<watch::RawWatch>()?;
    module.add_function(wrap_pyfunction!(connect::share, module)?)?;
    module.add_function(wrap_pyfunction!(connect::list_shares, module)?)?;
    module.add_function(wrap_pyfunction!(connect::without_password, module)?)?;
    module.add_function(wrap_pyfunction!(close_all, module)?)
}

//! The clients, sessions and shares of this process. All objects of Python with the same server,
//! login and options use one session. A child process connects again by itself.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use smbeam_client::{Client, Error, Session, Share};

use crate::per_process::PerProcess;
use crate::target::{OptionTexts, Target, TargetKey};

static POOL: PerProcess<Pool> = PerProcess::new();

/// Connecting, for all callers that wait for it.
type Connecting<T> = Shared<BoxFuture<'static, Result<T, Error>>>;

#[derive(Default)]
struct Pool {
    clients: Mutex<HashMap<OptionTexts, Client>>,
    sessions: Mutex<HashMap<TargetKey, Connecting<Session>>>,
    shares: Mutex<HashMap<(TargetKey, String), Connecting<Share>>>,
}

fn pool() -> &'static Pool {
    POOL.get_or_init(Pool::default)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The share of a target. Connects if there is no session, and again if the session is lost.
pub(crate) async fn share(target: &Arc<Target>) -> Result<Share, Error> {
    let key = (target.key.clone(), target.share_name().to_lowercase());
    let wanted = Arc::clone(target);
    let connect = move || {
        let connecting = async move {
            let session = session(&wanted).await?;
            session.share(wanted.share_name()).await
        };
        connecting.boxed()
    };
    let share = connected(&pool().shares, &key, connect).await?;
    target.was_connected.store(true, Ordering::Relaxed);
    if !share.session().is_lost() {
        return Ok(share);
    }
    share.reconnected().await
}

/// The session of a target.
pub(crate) async fn session(target: &Arc<Target>) -> Result<Session, Error> {
    let wanted = Arc::clone(target);
    let connect = move || {
        let connecting = async move {
            let client = client(&wanted)?;
            let url = &wanted.url;
            let limit = wanted.connect_limit();
            client
                .connect_within(limit, &url.host, url.port, &wanted.credentials)
                .await
        };
        connecting.boxed()
    };
    let session = connected(&pool().sessions, &target.key, connect).await?;
    target.was_connected.store(true, Ordering::Relaxed);
    if !session.is_lost() {
        return Ok(session);
    }
    session.reconnected().await
}

fn client(target: &Target) -> Result<Client, Error> {
    let mut clients = lock(&pool().clients);
    if let Some(client) = clients.get(&target.key.options) {
        return Ok(client.clone());
    }
    let client = Client::new(target.options.clone())?;
    clients.insert(target.key.options.clone(), client.clone());
    Ok(client)
}

/// The value of a key; `connect` makes it. All callers at the same time wait for one attempt. A
/// failed attempt is forgotten, so that the next caller tries again.
async fn connected<K, T>(
    table: &Mutex<HashMap<K, Connecting<T>>>,
    key: &K,
    connect: impl FnOnce() -> BoxFuture<'static, Result<T, Error>>,
) -> Result<T, Error>
where
    K: Clone + Eq + Hash,
    T: Clone,
{
    let connecting = {
        let mut table = lock(table);
        let entry = table.entry(key.clone());
        entry.or_insert_with(|| connect().shared()).clone()
    };
    let result = connecting.clone().await;
    if result.is_err() {
        let mut table = lock(table);
        if table.get(key).is_some_and(|now| now.ptr_eq(&connecting)) {
            table.remove(key);
        }
    }
    result
}

/// Logs off from all servers and waits for that. Objects that are used later connect again.
pub(crate) async fn close_all() -> Result<(), Error> {
    let Some(pool) = POOL.get() else {
        return Ok(());
    };
    lock(&pool.shares).clear();
    lock(&pool.sessions).clear();
    let clients: Vec<Client> = lock(&pool.clients)
        .drain()
        .map(|(_, client)| client)
        .collect();
    for client in clients {
        client.log_off().await;
    }
    Ok(())
}

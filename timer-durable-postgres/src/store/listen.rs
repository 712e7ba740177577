//! The second connection, which waits for notifications.
//!
//! Nodes without shards, functions of the database, and nodes that give shards back send a
//! notification, which is a hint. Without it, the store finds their work by its look once a second.

use super::connection::{Access, Dialed, Messages};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client};

/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);

/// The time within which a notification of this connection to itself must arrive.
const ECHO: Duration = Duration::from_secs(5);

/// A function that wakes the keeper.
pub(super) type Wake = Arc<dyn Fn() + Send + Sync>;

/// A finding of the listening thread.
#[derive(Clone, Copy)]
pub(super) enum Signal {
    /// Others have written, or may have while nobody listened.
    Foreign,
    /// Shards have changed their owners.
    Shards,
    /// Topics were paused or resumed.
    Pauses,
}

/// The findings of the listening thread that the keeper has not taken yet.
#[derive(Default)]
pub(super) struct Signals {
    raised: [AtomicBool; 3],
    wake: Mutex<Option<Wake>>,
}

impl Signals {
    pub(super) fn set_wake(&self, wake: Wake) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }

    /// Returns `true` if there is a finding.
    pub(super) fn has_any(&self) -> bool {
        // ORDERING: Acquire, pairs with `raise`.
        self.raised.iter().any(|raised| raised.load(Ordering::Acquire))
    }

    /// Takes a finding. Returns `false` if there is none.
    pub(super) fn take(&self, signal: Signal) -> bool {
        // ORDERING: Acquire, pairs with `raise`. A notification after this raises it again.
        self.raised[signal as usize].swap(false, Ordering::Acquire)
    }

    /// Asks for another look, which the keeper takes in its next turn.
    pub(super) fn again(&self) {
        // ORDERING: Relaxed, the keeper itself reads it.
        self.raised[Signal::Foreign as usize].store(true, Ordering::Relaxed);
    }

    fn raise(&self, signal: Signal) {
        // ORDERING: Release, pairs with the loads of the keeper, which then asks the database.
        if !self.raised[signal as usize].swap(true, Ordering::Release) {
            let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(wake) = wake {
                wake();
            }
        }
    }
}

/// The listening thread, which ends when this is dropped.
pub(super) struct Listener(watch::Sender<bool>);

impl Drop for Listener {
    fn drop(&mut self) {
        let _received = self.0.send(true);
    }
}

impl Listener {
    pub(super) fn start(access: Access, signals: Arc<Signals>) -> std::io::Result<Self> {
        let (stop, mut stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listen = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped.changed() => {}
                    () = listen(&access, &signals) => {}
                }
            });
        };
        std::thread::Builder::new().name("timer-listen".to_owned()).spawn(listen)?;
        Ok(Self(stop))
    }
}

/// Listens forever, with pauses between connections.
async fn listen(access: &Access, signals: &Signals) {
    loop {
        if let Ok(Ok(Dialed { client, messages, .. })) =
            tokio::time::timeout(ECHO, (access.dial)(access.config.clone())).await
        {
            follow(&client, messages, &access.schema, signals).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Listens until the connection ends.
async fn follow(client: &Client, mut messages: Messages, channel: &str, signals: &Signals) {
    // A notification to itself shows that notifications arrive. A pooler would lose them.
    let echo = format!("timer_echo_{:x}", fastrand::u64(..));
    let statements = format!("listen \"{channel}\"; listen {echo}; set idle_session_timeout = 0");
    let (heard, mut echoed) = watch::channel(false);
    let receive = async {
        loop {
            match poll_fn(&mut messages).await {
                Some(Ok(AsyncMessage::Notification(message))) if message.channel() == channel => {
                    signals.raise(match message.payload() {
                        "shards" => Signal::Shards,
                        "paused" => Signal::Pauses,
                        _ => Signal::Foreign,
                    });
                }
                Some(Ok(AsyncMessage::Notification(_))) => _ = heard.send(true),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    };
    let subscribe = async {
        if client.batch_execute(&statements).await.is_err() {
            return;
        }
        while let Err(error) = client.batch_execute(&format!("notify {echo}")).await {
            if error.code() != Some(&SqlState::PROGRAM_LIMIT_EXCEEDED) {
                return;
            }
            // The server's queue is full.
            tokio::time::sleep(PAUSE).await;
        }
        if tokio::time::timeout(ECHO, echoed.changed()).await.is_err() {
            tracing::warn!("notifications do not arrive; the store looks for the work of others once a second");
            return;
        }
        // Work that arrived while nobody listened.
        signals.raise(Signal::Foreign);
        signals.raise(Signal::Pauses);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = receive => {}
        () = subscribe => {}
    }
}

//! A shop with timeouts in memory and durable ones. `tests/half_a_year.rs` runs it on virtual time.

use std::sync::Arc;

use timer_adapters::tokio;
use timer_durable::{Due, DurableTimer, DurableTimerBuilder, Error, IfPending, Schedule, Topic};
use tokio::time::{Duration, timeout};

const IDLE: Duration = Duration::from_secs(600);
const TIME_TO_PAY: Duration = Duration::from_secs(3 * 86_400);
const TIME_TO_RENEW: Duration = Duration::from_secs(12 * 3600);
const CLOSE: Topic<String> = Topic::new("order.close");
const PAY: Topic<String> = Topic::new("order.pay").backoff(IDLE, TIME_TO_PAY);
const LEASE: Topic<String> = Topic::new("worker.lease");

/// A function that receives the events of a shop.
pub type Note = Arc<dyn Fn(String) + Send + Sync>;

/// A shop. Clones are handles.
#[derive(Clone)]
pub struct Shop {
    timer: DurableTimer,
    note: Note,
}

impl Shop {
    /// Opens a shop with the store that `open` opens. `bank` fails if it refuses a payment.
    pub fn open(
        note: Note,
        bank: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
        open: impl FnOnce(DurableTimerBuilder) -> Result<DurableTimer, Error>,
    ) -> Result<Self, Error> {
        let [closed, paid, lost] = [(); 3].map(|()| note.clone());
        let close = move |due: &Due<String>| {
            let order = due.payload().clone();
            due.complete_with(move |tx| Ok(tx.cancel(PAY, &order)?)).wait()?;
            closed(format!("{} is closed unpaid", due.payload()));
            Ok(())
        };
        let pay = move |due: &Due<String>| {
            bank().inspect_err(|_| paid(format!("{} is refused, attempt {}", due.payload(), due.attempt())))?;
            let order = due.payload().clone();
            due.complete_with(move |tx| Ok(tx.cancel(CLOSE, &order)?)).wait()?;
            paid(format!("{} is paid", due.payload()));
            Ok(())
        };
        let lose = move |due: &Due<String>| {
            lost(format!("{} loses its lease", due.payload()));
            Ok(())
        };
        let builder = DurableTimer::builder().topic(CLOSE, close).topic(PAY, pay).topic(LEASE, lose);
        Ok(Self { timer: open(builder)?, note })
    }

    /// Serves a connection until it is idle for too long. Each request is an order.
    pub async fn serve(&self, mut requests: tokio::sync::mpsc::Receiver<String>) -> Result<(), Error> {
        while let Ok(Some(order)) = timeout(IDLE, requests.recv()).await {
            self.timer.schedule(CLOSE, Schedule::after(TIME_TO_PAY).key(&order), &order).await?;
            self.timer.schedule(PAY, Schedule::after(IDLE).key(&order), &order).await?;
        }
        (self.note)("a connection is closed".to_owned());
        Ok(())
    }

    /// Renews the lease of a worker.
    pub async fn renew(&self, worker: &str) -> Result<(), Error> {
        self.timer
            .schedule(LEASE, Schedule::after(TIME_TO_RENEW).key(worker).if_pending(IfPending::Later), worker)
            .await
            .map(drop)
    }
}

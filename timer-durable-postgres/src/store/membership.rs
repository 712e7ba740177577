//! Joining, and renewing the lease.

use super::agenda::Task;
use super::clock::Clock;
use super::column::uuid;
use super::link::{Fixed, Link};
use super::listen::{Listener, Signal};
use super::look::Frontier;
use super::{PostgresStore, SHARDS, lost};
use std::time::{Duration, Instant};
use timer_durable::store::{LeaseTime, Micros, Store, Upkeep};
use timer_durable::{StoreError, TimeoutId};
use tokio_postgres::types::Type;
use uuid::Uuid;

/// The shortest time between two renewals.
const PAUSE: Duration = Duration::from_millis(50);

/// Counts the pending timeouts of all shards if the table has at most 20,000 rows, dead ones
/// included, and the index is small, which takes some milliseconds. Otherwise the number is the one
/// of live rows, without the dead letters and tombstones at the last `vacuum` or `analyze`.
///
/// A count may visit many rows that were deleted and not vacuumed, and many pages that they have
/// left behind, so a limit of the count alone would not bound its time. The statistics are empty
/// after a crash, a failover and an upgrade of the server, and may be old after a switch between
/// servers. If they do not agree with the rows per page that the last `vacuum` or `analyze` has
/// found, the rows of 1,000 pages are counted, each of which is drawn from a thousandth of the
/// table.
///
/// The statement also finds the oldest transaction that keeps dead rows, with its age.
const PENDING: &str = "
    select case
        when n <= 20000 then n
        when n is null and is_plausible then greatest(live - ended, 0)
        else (
            with page as materialized (
                select floor((n + random()) * pages / drawn)::bigint as number from generate_series(0, drawn - 1) n
            )
            select coalesce(sum(r.rows) * pages / drawn, 0)::bigint
            from page, lateral (
                select count(*) as rows from timer.timeout
                where ctid >= format('(%s,0)', number)::tid and ctid < format('(%s,0)', number + 1)::tid
                    and ended is null
            ) r
        )
    end, o.holder, o.age
    from (
        select live, is_plausible, pages, least(pages, 1000) as drawn, case
            when live + dead <= 20000 and pg_relation_size('timer.timeout_by_due') < 8000000
            then (select count(*) from (select from timer.timeout where ended is null limit 20001) t)
        end as n, (
            select sum(greatest(reltuples, 0))::bigint from pg_class
            where oid in ('timer.timeout_dead'::regclass, 'timer.timeout_tombstone'::regclass)
        ) as ended
        from (
            select live, pages, pg_stat_get_dead_tuples(c.oid) as dead,
                   abs(live - reltuples * pages / nullif(relpages, 0)) <= live * 0.05 as is_plausible
            from pg_class c, pg_stat_get_live_tuples(c.oid) live,
                 lateral (select pg_relation_size(c.oid) / current_setting('block_size')::bigint as pages) p
            where c.oid = 'timer.timeout'::regclass
        ) s
    ) t left join lateral (
        select holder, (extract(epoch from clock_timestamp() - since) * 1000000)::bigint as age from (
            select concat_ws(' ', usename, 'with pid', pid) as holder, xact_start as since from pg_stat_activity
            where datname = current_database() and (backend_xmin is not null or backend_xid is not null)
                and backend_type = 'client backend' and pid <> pg_backend_pid()
            union all
            select 'the prepared transaction ' || gid, prepared from pg_prepared_xacts
            where database = current_database()
        ) h where since is not null order by since limit 1
    ) o on true";

/// The age of a transaction from which on an event reports it.
const OLD: Duration = Duration::from_secs(60);

impl PostgresStore {
    /// Returns the time at which a notification may be followed.
    pub(super) fn earliest_upkeep(&self) -> Instant {
        self.figures.renewed.map_or_else(Instant::now, |renewed| renewed + PAUSE)
    }

    /// Becomes a new instance.
    ///
    /// 1. Connect, unless the connection is in order.
    /// 2. Draw a number. If this process dies or loses an answer now, the number is never used.
    /// 3. In one transaction, fence all instances that this process may have been, and join with
    ///    the new number. The update of the fenced rows waits for statements that are under way.
    /// 4. Renew, which reads the shards.
    ///
    /// The number is noted before step 3. If the answer to step 3 is lost, the next join fences it.
    pub(super) fn join(&mut self) -> Result<(), StoreError> {
        self.shards.clear();
        self.epochs = vec![None; SHARDS];
        self.suspects.clear();
        self.frontier = Frontier::default();
        self.owes_settling = true;
        self.agenda.clear(Task::EndOfHold);
        if self.link.is_none() {
            self.take_connection()?;
        }
        let link = self.link()?;
        link.limit_locks(false)?;
        let new = link.draw()?;
        let tried = self.tried.clone();
        let is_first = !self.has_joined;
        self.tried.push(new);
        let name = self.name.clone().map(|name| Ok::<_, StoreError>(self.link()?.connection.storable(&name)));
        let name = name.transpose()?;
        let lease = self.lease.micros();
        let sql = "select timer.join_as($1, $2, $3, $4, $5)";
        let types = [Type::INT8, Type::INT8_ARRAY, Type::TEXT, Type::BOOL, Type::INT8];
        let joined = self.link()?.connection.run(sql, &types, &[&new, &tried, &name, &is_first, &lease]);
        joined.map_err(StoreError::from).inspect_err(|error| {
            if !matches!(error, StoreError::InDoubt(_)) {
                // The server has refused the number, for example because a later process has the
                // name, and would be asked to fence ever more of them.
                self.tried.pop();
            }
        })?;
        self.has_joined = true;
        self.instance = new;
        self.tried = vec![new];
        self.lease.begin();
        for take in [Clock::start, Clock::take, Clock::take] {
            let sent = Instant::now();
            let now = self.link()?.connection.ask("select timer.now()")?.get(0);
            take(&mut self.clock, sent, now);
        }
        match self.renew(&[]) {
            // The probe has not found the pooler.
            Err(_) if self.pooled && !self.link()?.is_pooled() => {
                self.link = None;
                return self.join();
            }
            renewed => renewed?,
        };
        self.link()?.limit_locks(true)?;
        self.listen();
        Ok(())
    }

    /// Performs step 1 of a join.
    fn take_connection(&mut self) -> Result<(), StoreError> {
        self.figures.reconnects += u64::from(self.fresh.is_none() && self.has_joined);
        self.connect().map_err(|error| StoreError::Failed(error.to_string()))?;
        let connection = self.fresh.take().ok_or_else(lost)?;
        self.link = Some(Link::new(connection, self.lease.limit(), self.pooled)?);
        // The listening connection may lead to another server, or nowhere.
        self.listener = None;
        Ok(())
    }

    /// Starts the thread for notifications, unless it runs or a pooler would swallow them.
    fn listen(&mut self) {
        if self.pooled {
            self.listener = None;
        } else if self.listener.is_none() {
            let listener = Listener::start(self.access.clone(), self.signals.clone());
            self.listener = listener
                .inspect_err(
                    |error| tracing::warn!(%error, "no thread for notifications; the store looks once a second"),
                )
                .ok();
        }
    }

    pub(super) fn keep_up(&mut self, running: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        let mut upkeep = Upkeep::default();
        let now = Instant::now();
        if self.agenda.is_due(Task::EndOfHold, now) {
            self.agenda.clear(Task::EndOfHold);
        }
        if self.agenda.is_due(Task::Renewal, now) || self.lease.is_over() || self.signals.take(Signal::Shards) {
            let paused = self.paused;
            self.has_gained |= self.renew(running)?;
            // A notification of a pause may have been lost.
            upkeep.pauses_changed = self.paused != paused;
        }
        upkeep.pauses_changed |= self.signals.take(Signal::Pauses);
        if self.signals.take(Signal::Foreign) || self.agenda.is_due(Task::Look, now) || self.has_gained {
            // A look that fails is repeated at once.
            upkeep.foreign = self.sweep().inspect_err(|_| self.signals.again())?;
        }
        upkeep.shards_gained = std::mem::take(&mut self.has_gained);
        self.remove_tombstones();
        Ok(upkeep)
    }

    /// Removes old tombstones if it is time. A failure is only logged, because it must not fail the
    /// upkeep that renews the lease.
    fn remove_tombstones(&mut self) {
        let now = Instant::now();
        let Some(sql) = self.removal.begin(now) else { return };
        self.agenda.clear(Task::Removal);
        let removed = self.link().and_then(|link| {
            let row = link.connection.ask(&sql)?;
            Ok((row.get(0), row.get(1)))
        });
        match self.check(removed) {
            Ok((removed, last)) => {
                if let Some(next) = self.removal.end(now, removed, last) {
                    self.agenda.set(Task::Removal, next);
                }
            }
            Err(error) => tracing::warn!(server = self.describe(), %error, "old tombstones could not be removed"),
        }
    }

    /// Renews the lease. Returns `true` if this instance has gained a shard.
    pub(super) fn renew(&mut self, running: &[TimeoutId]) -> Result<bool, StoreError> {
        let sent = Instant::now();
        let begun = self.lease.send(sent);
        let grace = self.lease.grace();
        let is_steady = self.lease.is_steady(sent);
        let suspects: Vec<i64> =
            self.suspects.iter().filter(|(_, since)| since.elapsed() >= grace).map(|(instance, _)| *instance).collect();
        let running: Vec<Uuid> = running.iter().copied().map(uuid).collect();
        let instance = self.instance;
        let lease = self.lease.micros();
        let rows = match self.link()?.query(Fixed::Renew, &[&instance, &lease, &running, &is_steady, &suspects]) {
            Err(error) if error.is_locked() => return self.extend_lease(sent, begun),
            // Only an instance that has renewed once knows its shards.
            Err(error) if error.is_refusal() && self.figures.instance == self.instance as u32 => {
                if self.warnings.begins(sent) {
                    tracing::warn!(server = self.describe(), %error, "a renewal was refused; the node keeps its shards");
                }
                return self.extend_lease(sent, begun);
            }
            Err(error) => {
                self.pooled |= error.has_lost_session();
                return Err(error.into());
            }
            Ok(rows) => rows,
        };
        let row = rows.first().ok_or(StoreError::Fenced)?;
        let link = self.link()?;
        if !link.is_pooled() && !link.has_mark(row.get(7)) {
            self.pooled = true;
            return Err(StoreError::InDoubt("a pooler has changed the session".to_owned()));
        }
        let now: Micros = row.get::<_, Option<i64>>(0).ok_or(StoreError::Fenced)?;
        self.clock.take(sent, now);
        self.paused = row.get(8);
        let shards: Vec<i16> = row.get::<_, Option<Vec<i16>>>(1).unwrap_or_default();
        let epochs: Vec<i64> = row.get::<_, Option<Vec<i64>>>(2).unwrap_or_default();
        let suspects: Vec<i64> = row.get(3);
        self.suspects = suspects.into_iter().map(|id| (id, self.suspects.get(&id).copied().unwrap_or(sent))).collect();
        self.lease.extend(begun);
        self.agenda.set(Task::Renewal, sent + self.lease.interval());
        if !self.suspects.is_empty() {
            self.agenda.bring_forward(Task::Renewal, sent + grace);
        }
        if let Some(lapse) = row.get::<_, Option<i64>>(4) {
            // Wake when the lease of another instance would be over.
            let wait = Duration::from_micros(u64::try_from(lapse - now).unwrap_or(0)) + Duration::from_millis(20);
            self.agenda.bring_forward(Task::Renewal, sent + wait.max(PAUSE));
        }
        let mut now_owned = vec![None; SHARDS];
        for (shard, epoch) in shards.iter().zip(&epochs) {
            now_owned[shard.unsigned_abs() as usize] = Some(*epoch);
        }
        let gained = now_owned.iter().zip(&self.epochs).any(|(new, old)| new.is_some() && new != old);
        self.epochs = now_owned;
        self.shards = shards;
        self.figures.name.clone_from(&self.name);
        self.figures.instance = self.instance as u32;
        self.figures.shards = self.shards.len() as u32;
        self.figures.nodes = u32::try_from(row.get::<_, i64>(5)).unwrap_or(u32::MAX);
        self.figures.taken_over += row.get::<_, i64>(6).unsigned_abs();
        self.figures.renewed = Some(sent);
        if self.counts.begins(sent) {
            self.count_pending()?;
        }
        Ok(gained)
    }

    /// Counts the pending timeouts of all processes, and looks for a transaction that keeps dead
    /// rows.
    fn count_pending(&mut self) -> Result<(), StoreError> {
        let count = self.link()?.connection.ask(PENDING).map_err(StoreError::from);
        // A renewal that has succeeded must not fail for a figure.
        let row = self.check(count).ok();
        self.pending = row.as_ref().map(|row| row.get::<_, i64>(0).unsigned_abs());
        let age = row.as_ref().and_then(|row| row.get::<_, Option<i64>>(2)).unwrap_or(0);
        self.figures.oldest_transaction = Duration::from_micros(age.unsigned_abs());
        if self.figures.oldest_transaction > OLD {
            let holder: Option<String> = row.and_then(|row| row.get(1));
            tracing::warn!(
                server = self.describe(), holder, age = ?self.figures.oldest_transaction,
                "an old transaction keeps dead rows"
            );
        }
        Ok(())
    }

    /// Renews the lease and nothing else, because another transaction has locked a row that a
    /// renewal changes, or a trigger of the user refuses the change. The row may be a timeout that
    /// runs in a shard which this instance gives away.
    fn extend_lease(&mut self, sent: Instant, begun: LeaseTime) -> Result<bool, StoreError> {
        let sql =
            "update timer.node set lease_until = timer.now() + $2 where id = $1 and alive returning lease_until - $2";
        let instance = self.instance;
        let lease = self.lease.micros();
        let rows = self.link()?.connection.run(sql, &[Type::INT8, Type::INT8], &[&instance, &lease])?;
        let now = rows.first().ok_or(StoreError::Fenced)?.get(0);
        self.clock.take(sent, now);
        self.lease.extend(begun);
        self.agenda.set(Task::Renewal, Instant::now() + self.lease.pause());
        self.figures.renewed = Some(sent);
        Ok(false)
    }
}

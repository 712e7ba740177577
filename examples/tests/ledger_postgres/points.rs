//! Moments inside a statement of a node, at which the database holds it until the test goes on.

use std::time::{Duration, Instant};

use timer_durable_tests::postgres_server::Server;

/// A moment at which a node may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// A node takes the shards of a dead one.
    TakeOver,
    /// A node gives shards back, because it stops or because another one has joined.
    Release,
}

/// The first number of the locks that show which instance is held.
const LOCK: u32 = 77;

/// The trigger that holds nodes in one database.
pub(crate) struct Points<'a> {
    server: &'a Server,
    database: &'a str,
}

impl<'a> Points<'a> {
    /// Adds the trigger to a database that has the schema.
    pub(crate) fn install(server: &'a Server, database: &'a str) -> Self {
        let trigger = format!(
            "create table public.gate(point text);
             create function hold() returns trigger language plpgsql as $$
             declare v_point text;
             begin
                 v_point := case
                     when new.owner is null and old.owner is not null then 'Release'
                     when new.owner is distinct from old.owner and old.owner is not null then 'TakeOver'
                 end;
                 if v_point in (select point from public.gate) then
                     perform pg_advisory_xact_lock({LOCK}, coalesce(new.owner, old.owner)::int);
                     while v_point in (select point from public.gate) loop perform pg_sleep(0.005); end loop;
                 end if;
                 return new;
             end $$;
             create trigger hold before update on timer.shard for each row execute function hold()"
        );
        server.sql(database, &trigger);
        Self { server, database }
    }

    /// Holds the next node that comes to the point.
    pub(crate) fn close(&self, point: Point) {
        self.server.sql(self.database, &format!("insert into public.gate values ('{point:?}')"));
    }

    /// Lets nodes pass.
    pub(crate) fn open(&self) {
        self.server.sql(self.database, "delete from public.gate");
    }

    /// Returns the name of the node that is held, if there is one.
    pub(crate) fn held(&self) -> Option<String> {
        let names = format!(
            "select n.name from pg_locks l join timer.node n on n.id = l.objid::bigint
             where l.locktype = 'advisory' and l.classid = {LOCK} and l.granted
                 and l.database = (select oid from pg_database where datname = current_database()) limit 1"
        );
        Some(self.server.sql(self.database, &names)).filter(|name| !name.is_empty())
    }

    /// Waits until a node is held, for at most `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Option<String> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if let Some(name) = self.held() {
                return Some(name);
            }
            // Each question starts a process.
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

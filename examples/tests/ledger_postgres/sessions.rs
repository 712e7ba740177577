//! Events of sessions, each of which is indexed when it has been quiet for a while.
//!
//! Each event has a version, and its transaction debounces the timeout of the session. A handler
//! takes longer than the time between two events, so many calls are queued beside attempts. The
//! database keeps the account. It records each event with its call, and at the end of each attempt
//! the version that the attempt has indexed.

use std::time::{Duration, Instant};

use timer_durable_tests::postgres_server::Server;

/// The time that a handler takes, in milliseconds.
pub(crate) const HANDLER: u64 = 20;

/// Creates the tables in `public`. The role of the tests has the name of the schema, so they would
/// be there otherwise.
const TABLES: &str = "
    set search_path = public;
    create table session(id int primary key, version int not null default 0);
    insert into session select n from generate_series(1, 20) n;
    create table event(session int, version int, is_queued boolean);
    create table indexed(n bigint generated always as identity, session int, version int);
    create function send(p_session int) returns void language plpgsql as $$
    declare
        v_version int;
        v_id uuid;
    begin
        update session set version = version + 1 where id = p_session returning version into v_version;
        v_id := timer.schedule('timeouts', v_version::text, '30 ms', 's' || p_session, 'debounce');
        insert into event select p_session, v_version, state = 'queued' from timer.pending where id = v_id;
    end $$;
    create function note() returns trigger language plpgsql as $$ begin
        insert into public.indexed(session, version)
        values (substr(old.key, 2)::int, convert_from(old.payload, 'UTF8')::int);
        return null;
    end $$;
    create trigger note after delete on timer.timeout
    for each row when (old.begun is not null and old.if_pending is null) execute function note()";

const SEND: &str = "
    do $$ begin
        for n in 1..40 loop
            perform send(1 + floor(random() * 20)::int);
            commit;
            perform pg_sleep(0.003);
        end loop;
    end $$";

/// The events of a database that has the schema.
pub(crate) struct Sessions<'s> {
    server: &'s Server,
    database: &'s str,
}

impl<'s> Sessions<'s> {
    pub(crate) fn create(server: &'s Server, database: &'s str) -> Self {
        server.sql(database, TABLES);
        Self { server, database }
    }

    /// Sends events for `time`, by two sessions of the server.
    pub(crate) fn send(&self, time: Duration) {
        let end = Instant::now() + time;
        let send = || {
            while Instant::now() < end {
                self.server.sql(self.database, SEND);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(send);
            send();
        });
    }

    /// Returns the faults once nothing is pending any more. A fault is a session whose last version
    /// was not indexed, or a version that was indexed again or after a later one.
    pub(crate) fn close(&self) -> Vec<String> {
        let ask = |query: &str| self.server.sql(self.database, query);
        let counts = "select (select count(*) from event), (select count(*) from event where is_queued),
                      (select count(*) from indexed)";
        println!("events, those that were queued, and versions that were indexed: {}", ask(counts));
        let lost = "select 'lost', s.* from session s
                    where version <> coalesce((select version from indexed where session = s.id order by n desc limit 1), 0)";
        let unordered = "select 'again or too late', * from (
                             select *, lag(version) over (partition by session order by n) as last from indexed
                         ) i where version <= last";
        let unqueued = "select 'no call was queued' where not exists (select from event where is_queued)";
        [lost, unordered, unqueued]
            .iter()
            .flat_map(|query| ask(query).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }
}

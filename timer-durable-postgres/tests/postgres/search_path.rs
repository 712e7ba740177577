//! Objects of another role that would take the place of those of the system.

use timer_durable::store::{Reader, Store};
use timer_durable_postgres::{PostgresOptions, PostgresStore};

use super::pooler::Pooler;
use super::{Database, join, postgres_server};

/// The files with the SQL of the store.
const SQL: [&str; 7] = [
    include_str!("../../src/store/schema.sql"),
    include_str!("../../src/store/statements.rs"),
    include_str!("../../src/store/membership.rs"),
    include_str!("../../src/store/connect.rs"),
    include_str!("../../src/store/calls.rs"),
    include_str!("../../src/store/tombstones.rs"),
    include_str!("../../src/store/pooler.rs"),
];

/// Returns all words and all runs of operator characters of the files, as an array in SQL.
fn tokens() -> String {
    let is_operator = |c: char| "+-*/<>=~!@#%^&|".contains(c);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    for text in SQL {
        tokens.extend(text.split(|c| !is_word(c)).filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())));
        tokens.extend(text.split(|c| !is_operator(c)).filter(|token| !token.is_empty()));
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens.iter().map(|token| format!("'{token}'")).collect::<Vec<_>>().join(", ")
}

/// Creates a database in whose schema `public` each function, operator and type that the SQL may
/// mean has a twin that fails. The twins of functions with parameters of any type have concrete
/// types, too, so that they match better. Its template has the same name with `_template`.
fn traps(database: &Database) -> String {
    database.sql(&format!(
        r#"do $do$
        declare
            tokens text[] := array[{}];
            body text := 'begin raise exception $$the trap %% was called$$, %L; end';
            found record;
            kind text;
            made int := 0;
        begin
            for found in select p.oid, p.proname, oidvectortypes(proargtypes) as arguments,
                    pg_get_function_result(p.oid) as result
                from pg_proc p where pronamespace = 'pg_catalog'::regnamespace and proname = any (tokens) loop
                foreach kind in array array[null, 'uuid', 'bigint', 'integer', 'smallint', 'text', 'bytea'] loop
                    begin
                        execute format('create function public.%I(%s) returns %s language plpgsql as %L', found.proname,
                            coalesce(regexp_replace(regexp_replace(found.arguments, 'any(compatible)?array', kind || '[]', 'g'),
                                'any(element|compatible|nonarray)', kind, 'g'), found.arguments),
                            coalesce(regexp_replace(regexp_replace(found.result, 'any(compatible)?array', kind || '[]', 'g'),
                                'any(element|compatible|nonarray)', kind, 'g'), found.result),
                            format(body, found.proname));
                        made := made + 1;
                    exception when others then null;
                    end;
                end loop;
            end loop;
            for found in select * from pg_operator
                where oprnamespace = 'pg_catalog'::regnamespace and oprname = any (tokens) loop
                begin
                    execute format('create function public.operator_%s(%s) returns %s language plpgsql as %L', found.oid,
                        concat_ws(',', nullif(found.oprleft, 0)::regtype, found.oprright::regtype),
                        found.oprresult::regtype, format(body, found.oprname));
                    execute format('create operator public.%s (%s rightarg = %s, function = public.operator_%s)',
                        found.oprname, 'leftarg = ' || nullif(found.oprleft, 0)::regtype || ',',
                        found.oprright::regtype, found.oid);
                    made := made + 1;
                exception when others then null;
                end;
            end loop;
            for found in select typname from pg_type where typnamespace = 'pg_catalog'::regnamespace
                and typname = any (tokens) and typtype = 'b' loop
                execute format('create type public.%I as (trapped pg_catalog.int4)', found.typname);
                made := made + 1;
            end loop;
            if made < 500 then raise exception 'only % traps', made; end if;
        end $do$"#,
        tokens()
    ));
    let template = format!("{}_template", database.name);
    database.server.sql("postgres", &format!("alter database {} rename to {template}", database.name));
    template
}

#[test]
fn no_object_of_another_schema_is_used() {
    let (Some(server), Some(first)) = (postgres_server::shared(), Database::create()) else { return };
    let template = traps(&first);
    // Objects of `public` come before those of the system.
    let create = || {
        let name = format!("test_{:x}", fastrand::u64(..));
        server.sql("postgres", &format!("create database {name} template {template}"));
        server.sql("postgres", &format!("alter database {name} set search_path = public, pg_catalog"));
        Database { server: server.clone(), name }
    };
    let database = create();
    for call in ["cardinality('{1}'::pg_catalog.int2[])", "1 + 1", "'x'::text"] {
        let output = database.server.psql(&database.name).args(["-c", &format!("select {call}")]).output().unwrap();
        assert!(!output.status.success(), "the trap works: {call}");
    }
    // The name of the schema is a word of SQL.
    let open =
        |database: &Database| crate::connected(PostgresOptions::from_url(&database.url()).unwrap().schema("order"));
    open(&create()).expect("the store connects");
    timer_durable::conformance::run(|| open(&create()).expect("the store connects"));
    timer_durable::conformance::run_shared(|| {
        let database = create();
        [(); 2].map(|()| open(&database).expect("the store connects").lease(super::LEASE))
    });
    PostgresStore::install(&database.url()).wait().unwrap();
    PostgresStore::upgrade(&database.url()).wait().unwrap();
    let pooler = Pooler::start(&database, 2);
    for url in [database.url(), pooler.url()] {
        let mut node = join(&url, |store| store);
        let id = node.insert();
        node.attempt(id);
        let called = database
            .sql("select timer.cancel('t', 'k') from timer.schedule('t', 'x'::pg_catalog.text, interval '0', 'k')");
        assert_eq!(called, "cancelled");
        database.sql("select timer.schedule('t', '{}'::pg_catalog.jsonb, interval '0', 'k', 'replace')");
        node.keep_up_until(|node| node.0.membership().unwrap().foreign > 0);
        let complete = database.sql(&format!("select timer.complete('{id}', 1)"));
        assert_eq!(complete, "t");
        node.0.counts().unwrap();
        node.0.leave().unwrap();
        database.sql("select timer.cancel('t', 'k')");
    }
}

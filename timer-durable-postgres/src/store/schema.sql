-- The schema of timer-durable, version 1. Times are microseconds since 1970 on the server's clock.

-- Neither a function nor an operator of another schema takes the place of one of the system. The
-- functions have this path as well.
set search_path = pg_catalog, pg_temp;

create schema if not exists timer;

create table timer.meta(version integer primary key);
insert into timer.meta values (1);

-- An instance of a node. A node that joins again is a new instance.
create table timer.node(
    id bigint primary key,
    name text,
    lease_until bigint not null,
    alive boolean not null default true
) with (fillfactor = 50);
create unique index node_by_name on timer.node(name) where alive and name is not null;

-- The numbers of instances, which are part of the ids that they make. 0 and 4294967295 are reserved.
create sequence timer.instance as bigint minvalue 1 maxvalue 4294967294 cycle;

-- A part of the list of timeouts. The epoch grows whenever the shard changes its owner.
create table timer.shard(
    shard smallint primary key check (shard between 0 and 63),
    owner bigint,
    epoch bigint not null default 0
) with (fillfactor = 50);
-- The epochs begin with the time of the install, which is above those of rows that are copied here.
insert into timer.shard(shard, epoch)
select shard, (extract(epoch from clock_timestamp()) * 1000000)::bigint from generate_series(0, 63) shard;

-- Without `ended`, a row is a timeout that is pending or running. With `ended` and a reason it is a
-- dead letter. With `ended` alone it is a tombstone, which refuses another insert of its id until then.
--
-- With `foreign_xid`, the owner of the shard has not collected the row yet. It is the transaction that
-- has written the row, so that a look begins behind those that the last look has seen. Without this
-- bound, a look would visit all dead versions while an old snapshot keeps them.
--
-- `planned` is the time for which a run was planned that is repeated. Without it, the run is planned for
-- its due time. `started` is the time at which the last attempt began. `traceparent` is the trace of the
-- call that has scheduled the timeout.
--
-- With `if_pending`, a row is a call that waits until an attempt has ended. It is queued, and its number
-- in `begun` is greater than every epoch, so nothing begins or ends it. The row of the attempt has its id
-- in `queued`.
create table timer.timeout(
    id uuid primary key,
    due bigint not null,
    begun bigint,
    period bigint,
    max_lateness bigint,
    ended bigint,
    foreign_xid bigint,
    attempt integer not null default 0,
    forgiven integer not null default 0,
    shard smallint not null check (shard between 0 and 63),
    format smallint not null,
    topic text collate "C" not null,
    key text collate "C",
    payload bytea not null,
    reason text,
    planned bigint,
    started bigint,
    traceparent text,
    queued uuid,
    if_pending text
) with (
    fillfactor = 45,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_vacuum_cost_delay = 0
);
create index timeout_by_due on timer.timeout(topic, due, id, shard) where ended is null;
create unique index timeout_by_key on timer.timeout(topic, key, (if_pending is not null)) where key is not null and ended is null;
create index timeout_foreign on timer.timeout(foreign_xid, shard) where foreign_xid is not null;
create index timeout_queued on timer.timeout(id) where if_pending is not null;
create index timeout_dead on timer.timeout(id) where reason is not null;
create index timeout_dead_by_death on timer.timeout(topic, ended) where reason is not null;
create index timeout_tombstone on timer.timeout(ended) where ended is not null and reason is null;

-- The timeouts that have not ended. Its columns are stable, and the tables are not.
create view timer.pending as select
    t.id, t.topic, t.key, to_timestamp(t.due / 1000000.0) as due,
    case
        when t.if_pending is not null then 'queued'
        when t.begun >= (select s.epoch from timer.shard s where s.shard = t.shard) then 'running'
        when t.planned is not null and t.attempt > t.forgiven then 'retrying'
        else 'pending'
    end as state,
    t.attempt, t.period * interval '1 microsecond' as period, t.payload
from timer.timeout t where t.ended is null;

-- The dead letters. Its columns are stable, too.
create view timer.dead as select
    t.id, t.topic, t.key, to_timestamp(t.due / 1000000.0) as due, to_timestamp(t.ended / 1000000.0) as died,
    t.attempt, t.reason, t.payload
from timer.timeout t where t.reason is not null;

-- The topics whose timeouts do not begin.
create table timer.paused(topic text collate "C" primary key);

-- It has no path of its own, because it would cost each statement a call.
create function timer.now() returns bigint language sql volatile as $$
    select (extract(epoch from pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000000)::bigint
$$;

-- The end of the ten minutes in which an insert of the id may be repeated, or null if nobody but
-- `p_instance`, which knows the outcome, could repeat it. In plpgsql like all functions with a path,
-- because the server plans such a function of plain SQL in each call.
create function timer.repeatable_until(p_id uuid, p_instance bigint) returns bigint language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if ('x00000000' || substr(p_id::text, 15, 4) || substr(p_id::text, 20, 4))::bit(64)::bigint in (p_instance, 4294967295) then
        return null;
    end if;
    return ('x0000' || substr(p_id::text, 1, 8) || substr(p_id::text, 10, 4))::bit(64)::bigint * 1000 + 600000000;
end
$$;

-- Ends a timeout.
create function timer.end_timeout(p_id uuid, p_instance bigint) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_until bigint := timer.repeatable_until(p_id, p_instance);
begin
    if v_until is null or v_until <= timer.now() then
        delete from timer.timeout where id = p_id;
    else
        update timer.timeout
        set ended = v_until, key = null, payload = '', reason = null, foreign_xid = null, if_pending = null
        where id = p_id;
    end if;
end
$$;

-- Inserts a timeout with regard to the one that has its key. The answers are created, exists, kept,
-- moved, queued and too_old. A call beside an attempt locks the row of the attempt, and then the call that
-- is queued there. `p_cap` is the latest due time of one that is debounced. Its row keeps it as the
-- planned time until the first attempt.
create function timer.put(
    p_id uuid, p_due bigint, p_topic text, p_key text, p_if_pending text, p_format smallint, p_payload bytea,
    p_period bigint, p_max_lateness bigint, p_until bigint, p_shard smallint, p_is_foreign boolean,
    p_instance bigint, p_cap bigint, p_traceparent text, out answer text, out other uuid, out due bigint
) language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_holder record;
    v_running uuid;
    v_replaced uuid;
    v_xid bigint := case when p_is_foreign then pg_current_xact_id()::text::bigint end;
begin
    for v_round in 1..20 loop
        if exists (select from timer.timeout t where t.id = p_id) then
            answer := 'exists';
            return;
        end if;
        if p_until <= timer.now() then
            answer := 'too_old';
            return;
        end if;
        select t.id, t.due, t.begun, case when t.attempt = 0 then t.planned end as cap into v_holder from timer.timeout t
        where t.topic = p_topic and t.key = p_key and t.ended is null and t.if_pending is null for update;
        v_running := case when v_holder.begun is not null and p_if_pending not in ('keep', 'refuse') then v_holder.id end;
        if v_running is not null then
            -- The call that is queued there takes the place of a pending timeout. If its attempt was deleted
            -- without the triggers, it is queued beside this one now.
            select t.id, t.due, t.planned as cap into v_holder from timer.timeout t
            where t.topic = p_topic and t.key = p_key and t.ended is null and t.if_pending is not null for update;
            update timer.timeout t set queued = v_holder.id
            where t.id = v_running and t.queued is distinct from v_holder.id;
        end if;
        if v_holder.id is not null then
            other := v_holder.id;
            due := case
                when p_if_pending = 'earlier' then least(v_holder.due, p_due)
                when p_if_pending = 'later' then greatest(v_holder.due, p_due)
                when p_if_pending = 'update'
                    then least(v_holder.due, coalesce(timer.now() + p_period::numeric, p_due))
                when p_if_pending = 'debounce' then least(p_due, coalesce(v_holder.cap, p_cap))
                else v_holder.due
            end;
            if p_if_pending = 'replace' then
                perform timer.end_timeout(v_holder.id, p_instance);
                v_replaced := v_holder.id;
            elsif p_if_pending in ('update', 'debounce') then
                update timer.timeout t
                set format = p_format, payload = p_payload, period = p_period, max_lateness = p_max_lateness,
                    traceparent = p_traceparent,
                    planned = case
                        when p_if_pending = 'debounce' then coalesce(v_holder.cap, p_cap)
                        when put.due = t.due then t.planned
                    end,
                    due = put.due, shard = p_shard, foreign_xid = case when v_running is null then v_xid end,
                    if_pending = case when t.if_pending <> 'replace' then p_if_pending else t.if_pending end
                where t.id = v_holder.id;
                answer := case when v_running is null then 'moved' else 'queued' end;
                return;
            elsif due = v_holder.due then
                answer := case when v_running is null then 'kept' else 'queued' end;
                return;
            else
                update timer.timeout t
                set due = put.due, planned = null, shard = p_shard,
                    foreign_xid = case when v_running is null then v_xid end
                where t.id = v_holder.id;
                answer := case when v_running is null then 'moved' else 'queued' end;
                return;
            end if;
        end if;
        insert into timer.timeout(
            id, due, topic, key, format, payload, period, max_lateness, shard, planned, traceparent, foreign_xid, begun,
            if_pending
        ) values (
            p_id, p_due, p_topic, p_key, p_format, p_payload, p_period, p_max_lateness, p_shard, p_cap, p_traceparent,
            case when v_running is null then v_xid end,
            case when v_running is not null then 9223372036854775807 end,
            case when v_running is not null then p_if_pending end
        ) on conflict do nothing;
        if found and v_running is not null then
            update timer.timeout t set queued = p_id where t.id = v_running;
            answer := 'queued';
            other := p_id;
            due := p_due;
            return;
        elsif found then
            answer := 'created';
            other := v_replaced;
            due := p_due;
            return;
        end if;
        -- Another transaction was faster, and its row is visible now.
    end loop;
    raise exception 'a constraint or a trigger keeps the timeout % out', p_id;
end
$$;

-- Lets a queued call have its effect after the attempt of the row has ended. The triggers call it at the
-- end of the transaction, so a call of the handler in this transaction comes first. Its queries see all
-- that was committed before it got the lock of the row.
--
-- It has the rights of its owner. Before version 18, the server executes a deferred trigger as the role
-- that commits. This role may have ended the attempt by a function with the rights of another role. The
-- function refuses to work for any other table, so that nobody else can use these rights.
create function timer.settle() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_call timer.timeout;
    v_holder uuid;
begin
    if tg_relid <> 'timer.timeout'::regclass then
        raise exception 'a trigger of % cannot call timer.settle', tg_relid::regclass
            using errcode = 'insufficient_privilege';
    end if;
    update timer.timeout t set queued = null where t.id = old.id and t.queued is not null;
    select * into v_call from timer.timeout t where t.id = coalesce(new.queued, old.queued) and t.if_pending is not null for update;
    if not found then
        return null;
    end if;
    select t.id into v_holder from timer.timeout t
    where t.topic = v_call.topic and t.key = v_call.key and t.ended is null and t.if_pending is null for update;
    if v_holder is not null and v_call.if_pending <> 'replace' then
        perform timer.end_timeout(v_call.id, -1);
        perform timer.put(
            gen_random_uuid(), v_call.due, v_call.topic, v_call.key, v_call.if_pending, v_call.format, v_call.payload,
            v_call.period, v_call.max_lateness, null, v_call.shard, true, -1, v_call.planned, v_call.traceparent);
    else
        perform timer.end_timeout(v_holder, -1);
        update timer.timeout t
        set begun = null, if_pending = null, foreign_xid = pg_current_xact_id()::text::bigint where t.id = v_call.id;
    end if;
    perform timer.announce('');
    return null;
end
$$;

-- Sends a notification, which is a hint, since all nodes look once a second. It fails the transaction if
-- the server's queue is full, and a transaction that sent one cannot be prepared. So the setting
-- `timer_durable.notify` turns it off.
create function timer.announce(p_change text) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if current_setting('timer_durable.notify', true) is distinct from 'off' then
        perform pg_notify('timer', p_change);
    end if;
end
$$;

-- Becomes a new instance. Nothing that the instances in `p_tried` have sent is executed afterwards,
-- because the update of their rows waits for all of it. The first instance of a process takes the name
-- from an earlier process; a later one finds that a later process has taken it.
create function timer.join_as(p_new bigint, p_tried bigint[], p_name text, p_is_first boolean, p_lease bigint)
returns bigint language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_old bigint[];
begin
    if not p_is_first and exists (
        select from timer.node
        where name = p_name and alive and lease_until > timer.now() and id <> all (p_tried)
    ) then
        raise exception 'another process has joined with the name %', p_name using errcode = 'TM001';
    end if;
    v_old := p_tried || array(select id from timer.node where name = p_name and alive);
    update timer.node set alive = false where id = any (v_old) and alive;
    insert into timer.node(id, name, lease_until) values (p_new, p_name, timer.now() + p_lease);
    update timer.shard set owner = p_new, epoch = epoch + 1 where owner = any (v_old);
    perform timer.announce('shards');
    return timer.now();
end
$$;

-- Renews the lease, takes over the shards of dead instances, and takes or gives back shards until this
-- instance has its share. `now` is null if the instance was taken over.
--
-- The shares of all instances add up to 64. The first ones by their ids have one shard more than the
-- others if 64 cannot be divided by their number. An instance keeps its last shard, which its handlers
-- may need.
--
-- With `p_is_steady`, an instance is dead when its lease is over. Otherwise the database may have been
-- away, and the instance is dead only if it is one of `p_suspects`, which were found so before.
create function timer.renew(
    p_instance bigint, p_lease bigint, p_running uuid[], p_is_steady boolean, p_suspects bigint[],
    out now bigint, out shards smallint[], out epochs bigint[], out suspects bigint[], out next_lapse bigint,
    out nodes bigint, out taken bigint
) language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_dead bigint[];
    v_mine smallint[];
    v_give smallint[];
    v_rank bigint;
    v_share bigint;
begin
    update timer.node set lease_until = timer.now() + p_lease where id = p_instance and alive
    returning lease_until - p_lease into renew.now;
    if not found then
        return;
    end if;
    -- An instance with an open transaction is alive, so its locked row is skipped.
    with dead as (
        select id from timer.node
        where alive and lease_until < renew.now and id <> p_instance and (p_is_steady or id = any (p_suspects))
        for update skip locked
    )
    update timer.node n set alive = false from dead where n.id = dead.id;
    suspects := array(select id from timer.node where alive and lease_until < renew.now);
    -- A new statement has a new snapshot, which contains the last commits of the dead instances.
    v_dead := array(select id from timer.node where not alive);
    update timer.shard set owner = p_instance, epoch = epoch + 1 where owner = any (v_dead);
    get diagnostics taken = row_count;
    select count(*), min(lease_until) filter (where id <> p_instance), count(*) filter (where id < p_instance)
    into nodes, next_lapse, v_rank from timer.node where alive and lease_until >= renew.now;
    v_share := 64 / nodes + (v_rank < 64 % nodes)::int;
    v_mine := array(select shard from timer.shard where owner = p_instance order by shard);
    if cardinality(v_mine) > greatest(v_share, 1) then
        v_give := v_mine[greatest(v_share, 1) + 1:];
        -- Handlers go on, so their timeouts move to a shard that stays. The last attempt of such a timeout
        -- may be one of a dead instance, and stays pending then.
        update timer.timeout t set shard = s.shard, begun = s.epoch - (t.begun < g.epoch)::int
        from timer.shard s, timer.shard g
        where t.id = any (p_running) and t.shard = any (v_give) and t.begun is not null and s.shard = v_mine[1]
            and g.shard = t.shard;
        update timer.shard set owner = null where owner = p_instance and shard = any (v_give);
        perform timer.announce('shards');
    elsif cardinality(v_mine) < v_share then
        update timer.shard set owner = p_instance, epoch = epoch + 1 where shard in (
            select shard from timer.shard where owner is null order by shard
            limit v_share - cardinality(v_mine) for update skip locked
        );
    end if;
    select array_agg(s.shard order by s.shard), array_agg(s.epoch order by s.shard) into shards, epochs
    from timer.shard s where s.owner = p_instance;
    delete from timer.node where not alive and lease_until < renew.now - 86400000000;
end
$$;

-- Hands everything back before a process ends.
create function timer.leave(p_instance bigint) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    update timer.node set alive = false where id = p_instance and alive;
    update timer.shard set owner = null where owner = p_instance;
    perform timer.announce('shards');
end
$$;

-- Tells the owners of shards of a row that they should collect.
create function timer.announce() returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform timer.announce('');
end
$$;

-- Returns the length of an interval, in which a day is 24 hours. A month or a year has no fixed length.
create function timer.micros(p_name text, p_length interval) returns bigint
language plpgsql immutable strict set search_path = pg_catalog, pg_temp as $$
begin
    if extract(year from p_length) <> 0 or extract(month from p_length) <> 0 then
        raise exception '%: % was given; allowed are weeks, days, hours, minutes and seconds', p_name, p_length
            using errcode = 'invalid_parameter_value',
                hint = 'Months and years have different lengths. For a date, give at => now() + the interval.';
    end if;
    return (extract(epoch from p_length) * 1000000)::bigint;
end
$$;

-- Returns the due time of a call, which gives a delay or a time.
create function timer.due(p_delay interval, p_at timestamptz) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if (p_delay is null) = (p_at is null) then
        raise exception 'delay, at: % and % were given; allowed is one of both', p_delay, p_at
            using errcode = 'invalid_parameter_value';
    end if;
    return coalesce((extract(epoch from p_at) * 1000000)::bigint,
        timer.now() + greatest(timer.micros('delay', p_delay), 0));
end
$$;

-- Schedules a timeout in the caller's transaction, as the drivers of the Rust crate do. All times are
-- microseconds, and `p_cap` is a delay. Answers created, kept or moved, with the id of the timeout that is pending then, or
-- queued with the id of the call. A call whose id the store has already answers created.
create function timer.schedule_and_tell(
    p_topic text, p_key text, p_payload bytea, p_format bigint, p_if_pending text, p_id uuid, p_due bigint,
    p_period bigint, p_max_lateness bigint, p_traceparent text, p_cap bigint, out answer text, out timeout uuid
) language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id uuid := coalesce(p_id, (lpad(to_hex(timer.now() / 1000), 12, '0') || 'ffffffff'
        || substr(replace(gen_random_uuid()::text, '-', ''), 1, 12))::uuid);
    v_cap bigint := timer.now() + p_cap;
    v_put record;
begin
    if p_if_pending is null or p_if_pending not in ('keep', 'replace', 'earlier', 'later', 'update', 'debounce', 'refuse') then
        raise exception 'if_pending: % was given; allowed is keep, replace, earlier, later, update, debounce, refuse', p_if_pending
            using errcode = 'invalid_parameter_value';
    end if;
    if octet_length(p_topic) > 255 or octet_length(p_key) > 255 or octet_length(p_traceparent) > 255 then
        raise exception 'topic, key and traceparent: at most 255 bytes are allowed'
            using errcode = 'invalid_parameter_value';
    end if;
    if octet_length(p_payload) > 1048576 then
        raise exception 'payload: % bytes were given; at most 1048576 are allowed', octet_length(p_payload)
            using errcode = 'invalid_parameter_value';
    end if;
    if p_period <= 0 or p_max_lateness < 0 then
        raise exception 'period, max_lateness: % and % us were given; a period must be positive, and no lateness negative',
            p_period, p_max_lateness using errcode = 'invalid_parameter_value';
    end if;
    if p_cap < 0 or p_cap is not null and p_if_pending <> 'debounce' then
        raise exception 'cap: % us was given with if_pending %; allowed is a positive one with debounce', p_cap, p_if_pending
            using errcode = 'invalid_parameter_value';
    end if;
    select * into v_put from timer.put(
        v_id, least(p_due, v_cap), p_topic, p_key, p_if_pending, p_format::smallint, p_payload, p_period, p_max_lateness,
        timer.repeatable_until(v_id, -1), floor(random() * 64)::smallint, true, -1, v_cap, p_traceparent
    );
    if p_if_pending = 'refuse' and v_put.answer = 'kept' then
        raise exception 'the key has a pending timeout, %', v_put.other using errcode = 'unique_violation';
    elsif v_put.answer = 'too_old' then
        raise exception 'the id % is too old to be used for a new timeout', v_id
            using errcode = 'invalid_parameter_value';
    end if;
    perform timer.announce();
    answer := case when v_put.answer in ('kept', 'moved', 'queued') then v_put.answer else 'created' end;
    timeout := case when answer = 'created' then v_id else v_put.other end;
end
$$;

-- Schedules a timeout in the caller's transaction, and returns the id of the timeout that is pending
-- then, or of the call that is queued beside a running attempt. `if_pending` is keep, replace, earlier, later, update, debounce or refuse. `format` tells the handler how to read
-- the payload: 1 is bytes, 2 is text, 3 is JSON. It is due after `delay` or at the time `at`, and with
-- debounce at the latest `cap` after the call that has created it. `traceparent` is the trace to which the
-- call belongs, in the format of the W3C.
create function timer.schedule(
    topic text, payload bytea, delay interval default null, key text default null, if_pending text default 'keep',
    id uuid default null, format smallint default 1, at timestamptz default null, period interval default null,
    max_lateness interval default null, traceparent text default null, cap interval default null
) returns uuid language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return timeout from timer.schedule_and_tell(
        topic, key, payload, format, if_pending, id, timer.due(delay, at),
        timer.micros('period', period), timer.micros('max_lateness', max_lateness), traceparent,
        timer.micros('cap', cap));
end
$$;

create function timer.schedule(
    topic text, payload text, delay interval default null, key text default null, if_pending text default 'keep',
    id uuid default null, at timestamptz default null, period interval default null, max_lateness interval default null,
    traceparent text default null, cap interval default null
) returns uuid language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return timer.schedule(
        topic, convert_to(payload, 'UTF8'), delay, key, if_pending, id, 2::smallint, at, period, max_lateness,
        traceparent, cap);
end
$$;

create function timer.schedule(
    topic text, payload jsonb, delay interval default null, key text default null, if_pending text default 'keep',
    id uuid default null, at timestamptz default null, period interval default null, max_lateness interval default null,
    traceparent text default null, cap interval default null
) returns uuid language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return timer.schedule(
        topic, convert_to(payload::text, 'UTF8'), delay, key, if_pending, id, 3::smallint, at, period, max_lateness,
        traceparent, cap);
end
$$;

-- Returns the timeout with a key, and locks it.
create function timer.find(p_topic text, p_key text) returns uuid
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id uuid;
begin
    loop
        select t.id into v_id from timer.timeout t
        where t.topic = p_topic and t.key = p_key and t.ended is null and t.if_pending is null for update;
        -- The row that was found first may have been replaced while this waited for it.
        exit when found or not exists (
            select from timer.timeout t
            where t.topic = p_topic and t.key = p_key and t.ended is null and t.if_pending is null
        );
    end loop;
    return v_id;
end
$$;

-- Returns the call that is queued beside the attempt of a timeout, or the call itself, and locks it. The
-- row of the attempt is locked first.
create function timer.find_queued(p_id uuid) returns uuid
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id uuid;
begin
    perform timer.find(t.topic, t.key) from timer.timeout t where t.id = p_id and t.if_pending is not null;
    select t.id into v_id from timer.timeout t
    where t.id in (p_id, (select r.queued from timer.timeout r where r.id = p_id)) and t.if_pending is not null for update;
    return v_id;
end
$$;

-- Cancels a timeout. The answers are cancelled, running and unknown, and queued_cancelled if the attempt
-- runs and the call that was queued beside it has ended.
create function timer.cancel(id uuid) returns text language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_begun bigint;
    v_call uuid;
begin
    select t.begun into v_begun from timer.timeout t
    where t.id = cancel.id and t.ended is null and t.if_pending is null for update;
    if found and v_begun is null then
        perform timer.end_timeout(id, -1);
        return 'cancelled';
    end if;
    v_call := timer.find_queued(id);
    if v_call is not null then
        update timer.timeout t set queued = null from timer.timeout c
        where c.id = v_call and t.topic = c.topic and t.key = c.key and t.ended is null and t.if_pending is null;
        perform timer.end_timeout(v_call, -1);
        return case when v_call = id then 'cancelled' else 'queued_cancelled' end;
    elsif v_begun is not null then
        return 'running';
    elsif exists (select from timer.timeout t where t.id = cancel.id and t.ended is null) then
        -- It was queued, and its attempt has just ended.
        return timer.cancel(id);
    end if;
    return 'unknown';
end
$$;

create function timer.cancel(topic text, key text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return timer.cancel(timer.find(topic, key));
end
$$;

-- Gives a timeout a new due time. The answers are reset, running and unknown, and queued_reset if the
-- attempt runs and the call that is queued beside it has the due time.
create function timer.move(p_id uuid, p_due bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_begun bigint;
    v_call uuid;
begin
    select t.begun into v_begun from timer.timeout t
    where t.id = p_id and t.ended is null and t.if_pending is null for update;
    if found and v_begun is null then
        update timer.timeout t set due = p_due, planned = null, foreign_xid = pg_current_xact_id()::text::bigint
        where t.id = p_id;
        perform timer.announce();
        return 'reset';
    end if;
    v_call := timer.find_queued(p_id);
    if v_call is not null then
        update timer.timeout t set due = p_due, planned = null where t.id = v_call;
        return 'queued_reset';
    elsif v_begun is not null then
        return 'running';
    elsif exists (select from timer.timeout t where t.id = p_id and t.ended is null) then
        return timer.move(p_id, p_due);
    end if;
    return 'unknown';
end
$$;

create function timer.reset(id uuid, delay interval) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return timer.move(id, timer.due(delay, null));
end
$$;

create function timer.reset(topic text, key text, delay interval, at timestamptz default null) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return timer.move(timer.find(topic, key), timer.due(delay, at));
end
$$;

-- Makes a dead letter pending again and due now. The answers are requeued, key_taken and unknown. With
-- `without_key`, it runs beside the timeout that has its key.
create function timer.requeue(id uuid, without_key boolean default false) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    update timer.timeout t set ended = null, reason = null, begun = null, forgiven = t.attempt, due = timer.now(),
        planned = null, traceparent = null, period = null, max_lateness = null,
        key = case when not without_key then t.key end, foreign_xid = pg_current_xact_id()::text::bigint
    where t.id = requeue.id and t.reason is not null;
    if not found then
        return 'unknown';
    end if;
    perform timer.announce();
    return 'requeued';
exception when unique_violation then
    return 'key_taken';
end
$$;

-- Deletes a dead letter. Returns false if there is none with this id.
create function timer.purge(id uuid) returns boolean language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform from timer.timeout t where t.id = purge.id and t.reason is not null for update;
    if not found then
        return false;
    end if;
    perform timer.end_timeout(id, -1);
    return true;
end
$$;

-- Pauses a topic, so that its timeouts do not begin on any node, or resumes it.
create function timer.pause(topic text) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into timer.paused values (topic) on conflict do nothing;
    perform timer.announce('paused');
end
$$;

create function timer.resume(topic text) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    delete from timer.paused p where p.topic = resume.topic;
    perform timer.announce('paused');
end
$$;

-- Ends an attempt in the caller's transaction, for an effect that happens exactly once. Returns false,
-- and changes nothing, if the attempt is not the one that runs. The next run of a periodic timeout
-- counts from the planned time of this one.
create function timer.complete(id uuid, attempt integer) returns boolean language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row timer.timeout;
    v_now bigint := timer.now();
    v_planned bigint;
begin
    select * into v_row from timer.timeout t
    where t.id = complete.id and t.attempt = complete.attempt and t.begun is not null and t.ended is null
        and t.if_pending is null for update;
    if not found then
        return false;
    end if;
    if v_row.period > 0 then
        v_planned := coalesce(v_row.planned, v_row.due);
        update timer.timeout t set begun = null, forgiven = t.attempt,
            foreign_xid = pg_current_xact_id()::text::bigint,
            due = least(9223372036854775807, v_planned + t.period::numeric * (greatest(v_now - v_planned, 0) / t.period + 1)),
            planned = null
        where t.id = complete.id;
        perform timer.announce();
    else
        perform timer.end_timeout(id, -1);
    end if;
    return true;
end
$$;

-- As `timer.complete`, but fails if the attempt is not the one that runs, so that the caller's
-- transaction cannot be committed.
create function timer.complete_or_fail(p_id uuid, p_attempt bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if not timer.complete(p_id, p_attempt::integer) then
        raise exception 'attempt % of the timeout % is not the one that runs', p_attempt, p_id using errcode = 'TM002';
    end if;
    return 'completed';
end
$$;

-- An attempt ends when its row is deleted, pending again, or a dead letter or tombstone. A row without a
-- queued call costs the comparison alone.
create constraint trigger settle_deleted after delete on timer.timeout deferrable initially deferred
    for each row when (old.queued is not null) execute function timer.settle();
create constraint trigger settle_updated after update on timer.timeout deferrable initially deferred
    for each row when (new.queued is not null and (new.begun is null or new.ended is not null))
    execute function timer.settle();

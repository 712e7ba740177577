//! Actions on durable timers, for a site that was made with them.
//!
//! # Requests that other sites cause
//!
//! A page of any site can make the user's browser send requests to this server, also on a port of
//! the loopback address. The site therefore refuses an action for each of these reasons:
//!
//! 1. The header `Timer-Action` is absent. A form cannot send it. A script of another site may do
//!    so only after this server has allowed it (a CORS preflight), which it never does.
//! 2. The header `Origin`, which browsers send with every `POST`, names another site than `Host`.
//! 3. `Host` is absent or unknown. A site can make its own name resolve to this server (DNS
//!    rebinding), and then `Origin` and `Host` have that name.
//!
//! The list of timeouts needs the third condition alone, because the browser does not let a page
//! read the replies of another site.

use super::json::Json;
use crate::http::{JSON, NO_STORE, Reply, Request, hosts};
use std::time::{Duration, SystemTime};
use timer_durable::{
    Call, CancelAnswer, DeadFilter, DurableTimer, Error, Filter, RequeueAnswer, RequeueCounts, ResetAnswer, TimeoutId,
    TimeoutState,
};
use timer_metrics::DurableMetrics;

/// The header that an action needs. Its value does not matter.
const HEADER: &str = "timer-action";

/// The number of timeouts, and of dead letters, in a list.
const LISTED: usize = 20;

const GONE: &str = "there is no such dead letter any more";

/// The actions of a site.
pub(crate) struct Actions<'a> {
    pub(crate) metrics: &'a DurableMetrics,
    /// The names of the site besides addresses and `localhost`.
    pub(crate) hosts: &'a [String],
}

/// The status and the text for an action that was not carried out.
type Refusal = (u16, String);

impl Actions<'_> {
    /// Returns the reply to a request for an action or for the list of timeouts, and `None` for any
    /// other path. Waits for the store of the timer.
    pub(crate) fn reply(&self, request: &Request) -> Option<Reply> {
        let path = request.path();
        let method = request.method();
        let result = match path.strip_prefix("/actions/") {
            Some(_) if method != "POST" => {
                return Some(Reply::text(405, "Allow: POST\r\n", "405: an action is a POST\n"));
            }
            Some(action) => self.check(request).and_then(|()| self.act(action, request)),
            None if path != "/timeouts.json" => return None,
            None if !["GET", "HEAD"].contains(&method) => return Some(Reply::error(405)),
            None => match self.check_host(request).and_then(|()| self.list(request)) {
                Ok(list) => return Some(Reply::ok(JSON, NO_STORE, list.into_bytes())),
                Err(refusal) => Err(refusal),
            },
        };
        let (status, text) = result.map_or_else(|refusal| refusal, |outcome| (200, outcome));
        Some(Reply::text(status, NO_STORE, text + "\n"))
    }

    /// Returns an error if the request may come from another site.
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        self.check_host(request)?;
        if request.values(HEADER).next().is_none() {
            return refuse(403, "the header Timer-Action is missing, which an action needs");
        }
        let is_own = |origin: &str| {
            let Some((_, host)) = origin.split_once("://") else { return false };
            request.hosts().any(|own| own.eq_ignore_ascii_case(host)) || hosts::is_named(host, self.hosts)
        };
        if request.values("origin").all(is_own) { Ok(()) } else { refuse(403, "the request comes from another site") }
    }

    fn check_host(&self, request: &Request) -> Result<(), Refusal> {
        let mut hosts = request.hosts().peekable();
        if hosts.peek().is_some() && hosts.all(|host| hosts::is_allowed(host, self.hosts)) {
            return Ok(());
        }
        refuse(403, "`Host` is not localhost, an address or a name given to LivePage::host")
    }

    fn act(&self, action: &str, request: &Request) -> Result<String, Refusal> {
        let id = || {
            let id: Result<TimeoutId, _> = given(request, "id")?.parse();
            id.map_err(|error| (400, error.to_string()))
        };
        let timer = self.timer(request)?;
        let done = match action {
            "cancel" => match timer.cancel_by_id(id()?).wait().map_err(failed)? {
                CancelAnswer::Cancelled => "cancelled",
                CancelAnswer::QueuedCancelled => "the queued call was cancelled, and the attempt goes on",
                CancelAnswer::Running => return refuse(409, "not cancelled, because an attempt has begun"),
                _ => return refuse(404, "not cancelled, because the timeout has ended"),
            },
            "run" => match timer.reset_by_id(id()?, Duration::ZERO).wait().map_err(failed)? {
                ResetAnswer::Reset => "due now",
                ResetAnswer::QueuedReset => "the queued call is due when the attempt has ended",
                ResetAnswer::Running => return refuse(409, "not moved, because an attempt has begun"),
                _ => return refuse(404, "not moved, because the timeout has ended"),
            },
            "requeue" => requeued(timer.requeue(id()?))?,
            "requeue-without-key" => requeued(timer.requeue_without_key(id()?))?,
            "purge" if timer.purge(id()?).wait().map_err(failed)? => "purged",
            "purge" => return refuse(404, GONE),
            "requeue-all" => {
                let counts = timer.requeue_many(&dead_filter(request)).wait().map_err(failed)?;
                let RequeueCounts { requeued, key_taken, .. } = counts;
                return Ok(format!("{requeued} requeued, {key_taken} stay dead, because their keys are taken"));
            }
            "purge-all" => {
                let purged = timer.purge_many(&dead_filter(request)).wait().map_err(failed)?;
                return Ok(format!("{purged} purged"));
            }
            "pause" => timer.pause_by_name(&given(request, "topic")?).wait().map(|()| "paused").map_err(failed)?,
            "resume" => timer.resume_by_name(&given(request, "topic")?).wait().map(|()| "resumed").map_err(failed)?,
            _ => return refuse(404, "there is no such action"),
        };
        Ok(done.to_owned())
    }

    /// Returns the timer that the request names.
    fn timer(&self, request: &Request) -> Result<DurableTimer, Refusal> {
        let label = given(request, "timer")?;
        self.metrics.timer(&label).ok_or_else(|| (404, format!("there is no durable timer `{label}`")))
    }

    /// Returns the earliest timeouts and some dead letters of a timer. Parameters name a topic and
    /// the beginning of a key.
    fn list(&self, request: &Request) -> Result<String, Refusal> {
        let timer = self.timer(request)?;
        let topic = narrowed(request, "topic");
        let mut filter = Filter::new();
        filter.topic = topic.clone();
        filter.key_prefix = narrowed(request, "key");
        let pending = timer.list(&filter, None, LISTED).wait().map_err(failed)?;
        let dead = timer.dead_letters(topic.as_deref(), None, LISTED).wait().map_err(failed)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros() as i64;
        let until = |json: &mut Json, time: i64| json.number(time.saturating_sub(now) as f64 / 1e6);
        let mut json = Json::default();
        json.object(|json| {
            json.key("pending").array(&pending, |json, row| {
                json.object(|json| {
                    json.key("id").string(&row.id.to_string());
                    json.key("topic").string(&row.topic);
                    json.key("key").option(row.key.as_deref(), Json::string);
                    until(json.key("due_in_seconds"), row.due);
                    json.key("attempt").number(row.attempt);
                    json.key("state").string(match row.state {
                        TimeoutState::Running => "running",
                        TimeoutState::Retrying => "retrying",
                        TimeoutState::Queued => "queued",
                        _ => "pending",
                    });
                });
            });
            json.key("dead").array(&dead, |json, letter| {
                json.object(|json| {
                    json.key("id").string(&letter.id.to_string());
                    json.key("topic").string(&letter.topic);
                    json.key("key").option(letter.key.as_deref(), Json::string);
                    until(json.key("died_in_seconds"), letter.died);
                    json.key("attempt").number(letter.attempt);
                    json.key("reason").string(&letter.reason);
                });
            });
        });
        Ok(json.into_text())
    }
}

fn requeued(call: Call<RequeueAnswer>) -> Result<&'static str, Refusal> {
    match call.wait().map_err(failed)? {
        RequeueAnswer::Requeued => Ok("requeued, and due now"),
        RequeueAnswer::KeyTaken(id) => Err((409, format!("not requeued, because the timeout {id} has its key"))),
        _ => refuse(404, GONE),
    }
}

/// Returns a parameter that narrows the list down.
fn narrowed(request: &Request, name: &str) -> Option<String> {
    request.parameter(name).filter(|value| !value.is_empty())
}

/// Returns the filter of an action on many dead letters.
fn dead_filter(request: &Request) -> DeadFilter {
    let mut filter = DeadFilter::new();
    filter.topic = narrowed(request, "topic");
    filter.key_prefix = narrowed(request, "key");
    filter
}

fn given(request: &Request, name: &str) -> Result<String, Refusal> {
    request.parameter(name).ok_or_else(|| (400, format!("the parameter `{name}` is missing")))
}

fn refuse<T>(status: u16, text: &str) -> Result<T, Refusal> {
    Err((status, text.to_owned()))
}

/// Returns the refusal for a call that has failed, or whose outcome is unknown.
fn failed(error: Error) -> Refusal {
    (if matches!(error, Error::Setting { .. }) { 400 } else { 503 }, error.to_string())
}

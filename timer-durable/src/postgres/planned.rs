//! The planned time of a run in the statements of a batch.
//!
//! The columns `planned` and `retry_due` exist since version 3 of the schema. With an earlier
//! version, a run is planned for its due time.

/// A change of the due time that begins a new run.
const NEW_RUN: &str = ", planned = null, retry_due = null";

/// The changes of a repetition. Only the next run of a periodic timeout, which has the number 1, is
/// a new run.
const REPEATED: &str = ",
        planned = case when ({4})[width_bucket(t.id, {1})] = 1 then null else {PLANNED} end,
        retry_due = case when ({4})[width_bucket(t.id, {1})] <> 1 then ({3})[width_bucket(t.id, {1})] end";

/// The planned time. A node that does not know the columns changes `due` alone.
const PLANNED: &str = "case when t.retry_due = t.due then t.planned else t.due end";

/// Returns a statement with these expressions in their places.
pub(super) fn fill(statement: &str, has_planned: bool) -> String {
    let [new_run, repeated, planned] = if has_planned { [NEW_RUN, REPEATED, PLANNED] } else { ["", "", "t.due"] };
    statement.replace("{NEW_RUN}", new_run).replace("{REPEATED}", repeated).replace("{PLANNED}", planned)
}

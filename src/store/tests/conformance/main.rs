//! One suite for both engines: each function is given a way to open a store and must see the same.

#![allow(clippy::unwrap_used)]

mod datasets;
mod decisions;
#[allow(dead_code)]
mod engines;
mod fixtures;
mod history;
mod outcomes;
mod quota;

/// Names every test of the suite once, and runs it on each engine.
macro_rules! suite {
    ($($file:ident: $($test:ident)+;)+) => {
        mod sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    crate::$file::$test(&crate::engines::Database::sqlite()).await;
                }
            )+)+
        }

        mod postgres {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs a PostgreSQL: cargo xtask test"]
                async fn $test() {
                    crate::$file::$test(&crate::engines::Database::postgres().await).await;
                }
            )+)+
        }
    };
}

suite! {
    decisions:
        a_decision_is_read_back_as_it_was
        the_last_of_a_conversation_is_the_newest_task;
    outcomes:
        an_outcome_is_recorded_once
        a_stranger_has_no_such_decision
        a_correction_takes_the_place_of_the_success
        the_next_message_corrects_before_or_after_the_report
        what_a_provider_said_is_not_kept
        an_outcome_that_is_not_wanted_is_not_stored;
    quota:
        errors_in_a_row_are_counted_and_punished
        costs_are_added_once_per_attempt
        an_escalation_is_answered_once
        evidence_is_imported_once
        an_exploration_is_told_once;
    datasets:
        rows_keep_their_place_and_their_past
        rows_are_found_after_others_went
        twenty_saves_at_once_make_twenty_rows
        an_edit_that_panics_fails_alone
        a_snapshot_is_kept_as_it_was;
    history:
        decisions_come_in_pages_newest_first
        a_page_ends_before_it_is_too_large
        a_report_sums_up_what_happened
        a_report_compares_costs_of_which_both_sides_are_known
        changes_are_told_in_the_order_of_commits
        pruning_removes_what_is_old_and_what_is_too_much
        quota_that_nothing_changed_for_90_days_is_pruned
        every_tenant_is_pruned;
}

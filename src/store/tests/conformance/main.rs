//! One suite for both engines: each function is given a way to open a store and must see the same.

mod decisions;
mod engines;
mod fixtures;
mod outcomes;

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
        the_next_message_corrects_before_or_after_the_report;
}

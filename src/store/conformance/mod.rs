//! What every store must do: one function a behaviour, written against the trait.
//!
//! A store's tests implement [`Subject`] and call the macro `store_conformance!` with an expression that makes a fresh
//! one; a store that keeps its content also calls `store_conformance_persistent!`.

pub mod concurrency;
pub mod fixtures;
pub mod links;
pub mod messages;
pub mod model;
pub mod persistence;
pub mod queues;
pub mod services;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Store;

/// A place where one store at a time is opened.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Opens the store: empty at first, later with what the one before, which was closed, has left.
    async fn open(&self, limits: Limits) -> Arc<dyn Store>;

    /// Keeps every write of the open store waiting until the returned value is dropped.
    async fn stall_writes(&self) -> Box<dyn Send>;
}

/// The limits of a store under test.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Messages that make a queue full.
    pub quota: u32,
    /// Batches that may wait.
    pub max_waiting_batches: u32,
    /// Bytes that may wait.
    pub max_waiting_bytes: u32,
    /// How long a batch waits for a place.
    pub wait_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            quota: 3,
            max_waiting_batches: 64,
            max_waiting_bytes: 1024 * 1024,
            wait_timeout: Duration::from_secs(60),
        }
    }
}

/// Makes a test of every behaviour that all stores have, each with a fresh `$subject`.
macro_rules! store_conformance {
    ($subject:expr) => {
        store_conformance! { @each $subject;
            queues::a_created_queue_is_found_by_each_of_its_ids,
            queues::a_queue_keeps_all_of_its_fields,
            queues::answers_stand_in_the_order_of_the_ids_with_none_for_absent_ones,
            queues::queues_to_subscribe_are_those_that_are_there_and_full_ones_are_not_called_empty,
            queues::an_id_that_is_taken_is_a_duplicate_and_changes_nothing,
            queues::a_queue_without_recipient_keys_or_with_half_a_link_is_a_conflict,
            queues::securing_again_is_done_with_the_same_key_and_a_conflict_with_another,
            queues::recipient_keys_are_replaced,
            queues::a_queue_is_suspended_blocked_and_unblocked,
            queues::the_day_of_last_use_is_noted,
            queues::a_notifier_is_set_replaced_and_removed,
            queues::operations_on_an_absent_queue_answer_no_queue,
            queues::a_deleted_queue_leaves_nothing_and_frees_its_ids,
            links::link_data_is_set_and_its_user_data_replaced,
            links::another_link_or_other_fixed_data_is_a_conflict,
            links::a_link_of_another_queue_is_a_duplicate,
            links::a_deleted_link_is_free_again,
            links::empty_parts_of_link_data_are_kept,
            links::a_send_can_delete_the_link,
            messages::messages_come_out_in_the_order_they_went_in,
            messages::only_the_first_message_of_an_empty_queue_finds_it_empty,
            messages::empty_and_largest_bodies_and_flags_are_kept,
            messages::acknowledging_another_message_deletes_nothing_and_shows_the_first,
            messages::acknowledging_without_an_id_deletes_the_first,
            messages::the_next_message_comes_only_when_asked_for,
            messages::a_queue_that_is_not_active_takes_no_messages,
            messages::a_full_queue_gets_one_marker_and_refuses_until_it_is_empty,
            messages::sequence_numbers_grow_also_after_the_queue_was_empty,
            messages::expired_messages_are_deleted_before_a_message_is_appended,
            messages::a_quota_marker_does_not_expire,
            messages::expiry_deletes_all_that_are_too_old_step_by_step,
            messages::no_more_first_messages_are_read_than_asked_for,
            messages::the_state_of_a_queue_tells_its_size_and_first_message,
            messages::counts_tell_queues_and_messages,
            services::a_service_is_known_by_its_certificate_in_one_role,
            services::however_many_enrol_one_service_it_is_one,
            services::queues_join_move_and_leave_services,
            services::an_association_that_can_not_be_is_a_conflict,
            services::a_queue_is_created_in_a_service_and_leaves_it_when_it_is_deleted,
            services::a_notifier_that_is_replaced_or_removed_leaves_its_service,
            services::a_message_tells_its_audience,
            services::a_look_tells_whose_queue_it_is,
            services::waiting_queues_come_in_pages,
            services::numbers_are_right_however_many_move_queues_between_services,
            concurrency::operations_of_a_batch_are_done_in_their_order,
            concurrency::a_condition_that_is_not_met_does_not_hinder_the_rest_of_the_batch,
            concurrency::an_empty_batch_is_answered,
            concurrency::each_of_many_concurrent_batches_gets_its_own_outcomes,
            concurrency::concurrent_sends_to_a_queue_are_all_kept_once,
            concurrency::a_batch_whose_caller_is_gone_is_done_wholly,
            concurrency::a_full_line_answers_overloaded_to_every_handle_and_recovers,
            concurrency::a_line_full_of_bytes_answers_overloaded,
            concurrency::closing_finishes_what_was_handed_over,
            concurrency::a_closed_store_says_so,
            concurrency::closing_answers_those_who_wait_for_a_place,
        }

        #[test]
        fn random_operations_have_the_outcomes_and_contents_of_a_model() {
            $crate::store::conformance::model::compare(|| Box::new($subject));
        }
    };
    (@each $subject:expr; $($group:ident :: $name:ident),* $(,)?) => { $(
        #[tokio::test]
        async fn $name() {
            $crate::store::conformance::$group::$name(&$subject).await;
        }
    )* };
}

/// The same for what only stores that keep their content can do.
macro_rules! store_conformance_persistent {
    ($subject:expr) => {
        store_conformance! { @each $subject;
            persistence::everything_is_there_after_reopening,
            persistence::sequence_numbers_grow_across_reopening_an_emptied_queue,
            persistence::a_full_queue_is_full_after_reopening,
            services::services_are_there_after_reopening,
        }
    };
}

//! Links and their data.

use super::fixtures::*;
use super::{Limits, Subject};
use crate::protocol::command::LinkData;
use crate::store::{Op, OpOutcome, Party};

fn set(n: u8, link_id: u8, data: LinkData) -> Op {
    Op::SetLink { queue: recipient(n), link_id: link(link_id), data }
}

pub async fn link_data_is_set_and_its_user_data_replaced(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    for user in ["one", "two", "two"] {
        done(&store, set(1, 1, data("fixed", user))).await;
        assert_eq!(link_data(&store, 1).await, Some(data("fixed", user)));
    }
    assert_eq!(record(&store, 1).await.unwrap().link_id, Some(link(1)));
}

pub async fn another_link_or_other_fixed_data_is_a_conflict(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(rich_queue(1))).await;
    assert_eq!(one(&store, set(1, 2, data("fixed", "new"))).await, OpOutcome::Conflict);
    assert_eq!(one(&store, set(1, 1, data("other", "new"))).await, OpOutcome::Conflict);
    assert_eq!(link_data(&store, 1).await, Some(data("fixed", "user")));
    assert_eq!(link_data(&store, 2).await, None);
}

pub async fn a_link_of_another_queue_is_a_duplicate(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.apply(vec![create(rich_queue(1)), create(queue(2))]).await.unwrap();
    assert_eq!(one(&store, set(2, 1, data("fixed", "new"))).await, OpOutcome::Duplicate);
    assert_eq!(link_data(&store, 1).await, Some(data("fixed", "user")));
    assert_eq!(record(&store, 2).await.unwrap().link_id, None);
}

pub async fn a_deleted_link_is_free_again(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    store.apply(vec![create(rich_queue(1)), create(queue(2)), create(rich_queue(3))]).await.unwrap();
    for _again in 0..2 {
        done(&store, Op::DeleteLink { queue: recipient(1) }).await;
        assert_eq!(link_data(&store, 1).await, None);
        assert_eq!(record(&store, 1).await.unwrap().link_id, None);
    }
    done(&store, set(2, 1, data("other", "new"))).await;
    delete(&store, 3).await;
    done(&store, set(1, 3, data("more", "new"))).await;
    let owner = store.queues(Party::Link, &[link(3)]).await.unwrap().remove(0);
    assert_eq!(owner.map(|owner| owner.recipient_id), Some(recipient(1)));
}

pub async fn empty_parts_of_link_data_are_kept(subject: &dyn Subject) {
    let store = subject.open(Limits::default()).await;
    done(&store, create(queue(1))).await;
    done(&store, set(1, 1, data("", ""))).await;
    assert_eq!(link_data(&store, 1).await, Some(data("", "")));
    done(&store, set(1, 1, data("", "user"))).await;
    assert_eq!(one(&store, set(1, 1, data("fixed", "user"))).await, OpOutcome::Conflict);
}

pub async fn a_send_can_delete_the_link(subject: &dyn Subject) {
    let store = subject.open(Limits { quota: 0, ..Limits::default() }).await;
    store.apply(vec![create(rich_queue(1)), create(rich_queue(2)), create(rich_queue(3))]).await.unwrap();
    done(&store, Op::SuspendQueue { queue: recipient(3) }).await;
    let mut ops = [message(1, 1), message(2, 1), message(3, 1)];
    ops[0].delete_link = true;
    ops[2].delete_link = true;
    let outcomes = store.apply(ops.map(|op| Op::Send(Box::new(op))).to_vec()).await.unwrap();
    assert_eq!(outcomes, [OpOutcome::Quota, OpOutcome::Quota, OpOutcome::Conflict]);
    let links = store.link_data(&[1, 2, 3].map(link)).await.unwrap();
    assert_eq!(links.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
}

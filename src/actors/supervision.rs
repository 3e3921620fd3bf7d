//! Supervision: when an actor that the server can not do without ends unasked, the server ends, with an error.
//!
//! A worker that is gone would lose its share of the connections, a registry shard its share of the subscriptions, and all
//! would look well from outside. What they owned is lost with them, so they are not started anew within the process: the
//! service manager starts a new one, clients connect again, and nothing that was answered is lost. A connection that ends
//! unasked costs only itself.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// Raised when something vital has ended.
#[derive(Debug, Default)]
pub struct Alarm {
    ended: Mutex<Option<&'static str>>,
    notify: Notify,
}

/// Kept by a vital actor: dropped, it raises the alarm. When the server stops, nobody listens any more.
#[derive(Debug)]
pub struct Vital {
    name: &'static str,
    alarm: Arc<Alarm>,
}

impl Alarm {
    /// What an actor of this name is to keep.
    pub fn vital(self: &Arc<Self>, name: &'static str) -> Vital {
        Vital { name, alarm: Arc::clone(self) }
    }

    /// Tells that `name` has ended. The first one counts.
    pub fn raise(&self, name: &'static str) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(name);
        self.notify.notify_one();
    }

    /// Resolves, with its name, when something has ended.
    pub async fn raised(&self) -> &'static str {
        loop {
            let notified = self.notify.notified();
            if let Some(name) = *self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
                return name;
            }
            notified.await;
        }
    }
}

impl Drop for Vital {
    fn drop(&mut self) {
        self.alarm.raise(self.name);
    }
}

#[cfg(test)]
mod tests {
    use actix::{Actor, Context, Handler, Message};
    use futures_util::FutureExt;

    use super::*;

    struct Fragile {
        _vital: Vital,
    }

    impl Actor for Fragile {
        type Context = Context<Self>;
    }

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Break;

    impl Handler<crate::actors::mailbox::Letter<Break>> for Fragile {
        type Result = ();

        fn handle(&mut self, _: crate::actors::mailbox::Letter<Break>, _: &mut Self::Context) {
            panic!("as it must not");
        }
    }

    #[actix::test]
    async fn an_actor_that_panics_raises_the_alarm_once_and_for_all() {
        use crate::actors::mailbox::{Gate, Sender};
        let alarm = Arc::new(Alarm::default());
        let fragile = Fragile { _vital: alarm.vital("fragile") }.start();
        assert!(alarm.raised().now_or_never().is_none());
        let sender = Sender::<Break>::new(&fragile, Gate::new(1, Arc::default()));
        assert!(sender.send(Break).await.is_err());
        assert_eq!(alarm.raised().await, "fragile");
        assert_eq!(alarm.raised().await, "fragile");
    }
}

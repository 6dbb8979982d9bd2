use super::super::connection::{Event, News};
use super::super::held::tests::held;
use super::super::played::{EPOCH_MS, StandingClock, comes, more_of};
use super::*;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Receiver;

struct World {
    lane: Lane,
    means: Means,
    events: Receiver<Event>,
    listener: TcpListener,
}

impl World {
    async fn of(connections_per_address: usize, places: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (tasks, events) = Tasks::new();
        let lane = Lane::new(LaneId(1), Arc::new([listener.local_addr().unwrap()]));
        let means = Means {
            clock: Arc::new(StandingClock::default()),
            tasks,
            places: Arc::new(Semaphore::new(places)),
            connections_per_address,
            connect_timeout: Duration::from_secs(10),
            reply_timeout_us: 3_000_000,
        };
        Self { lane, means, events, listener }
    }

    async fn news(&mut self) -> News {
        comes(self.events.recv()).await.unwrap().news
    }

    /// The connection that the lane is opening is opened; the executor's end of it.
    async fn opens(&mut self) -> TcpStream {
        let News::Opened(opened) = self.news().await else { panic!("it opens one") };
        let now = self.means.now();
        self.lane.opened(opened, now, &mut self.means);
        self.lane.settle(now, &mut self.means);
        comes(self.listener.accept()).await.unwrap().0
    }

    fn settle(&mut self) {
        let now = self.means.now();
        self.lane.settle(now, &mut self.means);
    }
}

#[tokio::test]
async fn a_run_of_which_not_a_byte_was_taken_goes_over_another_connection() {
    let mut world = World::of(1, 0).await;
    let (run, mut answered) = held(EPOCH_MS, EPOCH_MS + 1_000, "POST");
    let hold = run.hold.clone();
    assert!(world.lane.hold(run));
    world.settle();
    let executors_end = world.opens().await;
    // It has served, so it is not the executor's fault that it has ended.
    world.lane.connections.values_mut().for_each(|line| line.has_served = true);
    executors_end.set_zero_linger().unwrap();
    drop(executors_end);
    // This is where the lane would hear of it, if its instant had not come before.
    assert!(matches!(world.news().await, News::Replied(_, Err(_))));
    world.lane.send_due(9, &mut world.means);
    assert_eq!((world.lane.sent(), world.lane.runs.len(), hold.sent_us()), (0, 1, None));
    world.settle();
    let executors_end = world.opens().await;
    world.lane.send_due(9, &mut world.means);
    assert_eq!(comes(more_of(&executors_end)).await.as_deref(), Some("POST"));
    assert_eq!((world.lane.sent(), hold.sent_us()), (1, Some(EPOCH_MS * 1_000)));
    assert!(answered.try_recv().is_err(), "no reply yet");
}

#[tokio::test]
async fn every_address_has_one_connection_and_the_others_are_bounded_together() {
    let mut world = World::of(4, 2).await;
    for _ in 0..9 {
        world.lane.hold(held(EPOCH_MS + 9, EPOCH_MS + 1_000, "POST").0);
    }
    world.settle();
    assert_eq!((world.lane.opening, world.means.places.available_permits()), (3, 0));
    let _ends = [world.opens().await, world.opens().await, world.opens().await];
    assert_eq!((world.lane.opening, world.lane.connections.len()), (0, 3));

    // Other addresses need them.
    let opened = world.means.now();
    let unused = Now { local_us: opened.local_us + IDLE_UNUSED_US, ..opened };
    world.lane.sweep(Now { local_us: unused.local_us - 1, ..unused }, &world.means);
    assert_eq!(world.lane.connections.len(), 3);
    world.lane.sweep(unused, &world.means);
    assert_eq!((world.lane.connections.len(), world.lane.free.len()), (0, 0));
    assert_eq!(world.means.places.available_permits(), 2);
}

#[tokio::test]
async fn connections_are_opened_for_runs_and_not_more() {
    let mut world = World::of(OPENING_MAX + 8, 1_000).await;
    world.lane.hold(held(EPOCH_MS + 9, EPOCH_MS + 1_000, "POST").0);
    world.settle();
    world.settle();
    assert_eq!(world.lane.opening, 1);
    for _ in 0..OPENING_MAX + 20 {
        world.lane.hold(held(EPOCH_MS + 9, EPOCH_MS + 1_000, "POST").0);
    }
    world.settle();
    assert_eq!(world.lane.opening, OPENING_MAX);
    let mut ends = Vec::new();
    while ends.len() < OPENING_MAX + 8 {
        ends.push(world.opens().await);
    }
    assert_eq!((world.lane.opening, world.lane.connections.len()), (0, OPENING_MAX + 8));
}

#[tokio::test]
async fn an_address_that_took_no_connection_is_left_alone_for_a_second() {
    let mut world = World::of(1, 0).await;
    let now = world.means.now();
    world.lane.pause(Uncarried::NotListening("no connection".to_owned()), now);
    let (run, answered) = held(EPOCH_MS, EPOCH_MS + 1_000, "POST");
    world.lane.hold(run);
    world.settle();
    assert_eq!(answered.await.unwrap(), Err(Uncarried::NotListening("no connection".to_owned())));
    assert!(!world.lane.is_over(now));
    let later = Now { local_us: now.local_us + PAUSE_US, ..now };
    assert!(world.lane.is_over(later));
    world.lane.hold(held(EPOCH_MS, EPOCH_MS + 1_000, "POST").0);
    world.lane.settle(later, &mut world.means);
    assert_eq!(world.lane.opening, 1);
}

use std::sync::mpsc;
use std::time::Duration;

use decision::contract::Kind;

use super::*;

/// A model whose passes begin when told to. Its numbers are the ids of the rows.
struct Held {
    begun: mpsc::Sender<Vec<u32>>,
    go: Mutex<mpsc::Receiver<Go>>,
}

enum Go {
    Answer,
    Panic,
}

impl RunRows for Held {
    fn run(&self, rows: &[TokenRow<'_>]) -> Result<Vec<RowOutput>, RunError> {
        let ids: Vec<u32> = rows.iter().map(|row| row.ids[0]).collect();
        self.begun.send(ids.clone()).unwrap();
        let told = self
            .go
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(10));
        match told {
            Ok(Go::Answer) => {}
            _ => panic!("told to"),
        }
        let output = |id: &u32| RowOutput {
            logits: vec![*id as f32],
            act_logits: Vec::new(),
        };
        Ok(ids.iter().map(output).collect())
    }
}

struct Bench {
    batcher: Arc<Batcher>,
    begun: mpsc::Receiver<Vec<u32>>,
    go: mpsc::Sender<Go>,
}

impl Bench {
    fn new(tokens: usize) -> Self {
        let (begun_in, begun) = mpsc::channel();
        let (go, go_out) = mpsc::channel();
        let model = Held {
            begun: begun_in,
            go: Mutex::new(go_out),
        };
        let limits = PassLimits {
            tokens,
            window: Duration::ZERO,
        };
        let batcher = Batcher::start(Arc::new(model), limits, Arc::new(|_| {})).unwrap();
        Self {
            batcher: Arc::new(batcher),
            begun,
            go,
        }
    }

    /// Rows of two tokens whose first tokens are `ids`.
    fn ask(
        &self,
        ids: &[u32],
        wait: Duration,
    ) -> tokio::task::JoinHandle<Result<Vec<f32>, BatchError>> {
        let rows = ids
            .iter()
            .map(|id| EncodedRow {
                ids: vec![*id, 0],
                markers: vec![1],
                kind: Kind::Choice,
            })
            .collect();
        let batcher = Arc::clone(&self.batcher);
        tokio::spawn(async move {
            let ran = batcher.run(rows, Instant::now() + wait).await?;
            Ok(ran.outputs.iter().map(|output| output.logits[0]).collect())
        })
    }

    async fn waiting(&self, rows: usize) {
        for _ in 0..1000 {
            if self.batcher.waiting_rows() == rows {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{} rows wait, expected {rows}", self.batcher.waiting_rows());
    }

    fn pass(&self) -> Vec<u32> {
        let begun = self.begun.recv_timeout(Duration::from_secs(10)).unwrap();
        self.go.send(Go::Answer).unwrap();
        begun
    }
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_several_requests_share_a_pass_and_keep_their_order() {
    let bench = Bench::new(100);
    let first = bench.ask(&[1], LONG);
    let begun = bench.begun.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(begun, [1], "nothing is waited for");
    let second = bench.ask(&[2, 3], LONG);
    bench.waiting(2).await;
    let third = bench.ask(&[4], LONG);
    bench.waiting(3).await;
    bench.go.send(Go::Answer).unwrap();
    assert_eq!(bench.pass(), [2, 3, 4]);
    assert_eq!(first.await.unwrap().unwrap(), [1.0]);
    assert_eq!(second.await.unwrap().unwrap(), [2.0, 3.0]);
    assert_eq!(third.await.unwrap().unwrap(), [4.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_job_lets_others_in_after_one_pass() {
    let bench = Bench::new(4);
    let large = bench.ask(&[1, 2, 3, 4, 5, 6], LONG);
    let begun = bench.begun.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(begun, [1, 2]);
    bench.waiting(4).await;
    let small = bench.ask(&[9], LONG);
    bench.waiting(5).await;
    bench.go.send(Go::Answer).unwrap();
    assert_eq!(
        bench.pass(),
        [9, 3],
        "the small one goes first, the rest of the pass is used"
    );
    assert_eq!(small.await.unwrap().unwrap(), [9.0]);
    assert_eq!(bench.pass(), [4, 5]);
    assert_eq!(bench.pass(), [6]);
    assert_eq!(
        large.await.unwrap().unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_clients_that_went_away_or_wait_too_long_never_begin() {
    let bench = Bench::new(100);
    let first = bench.ask(&[1], LONG);
    bench.begun.recv_timeout(Duration::from_secs(10)).unwrap();
    let gone = bench.ask(&[2], LONG);
    bench.waiting(1).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let late = bench.ask(&[3], Duration::ZERO);
    let last = bench.ask(&[4], LONG);
    bench.waiting(3).await;
    bench.go.send(Go::Answer).unwrap();
    assert_eq!(bench.pass(), [4]);
    assert_eq!(late.await.unwrap(), Err(BatchError::Expired));
    assert_eq!(last.await.unwrap().unwrap(), [4.0]);
    assert_eq!(first.await.unwrap().unwrap(), [1.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_a_pass_fails_its_jobs_and_no_others() {
    let bench = Bench::new(100);
    let first = bench.ask(&[1], LONG);
    bench.begun.recv_timeout(Duration::from_secs(10)).unwrap();
    bench.go.send(Go::Panic).unwrap();
    assert_eq!(first.await.unwrap(), Err(BatchError::Panicked));
    let second = bench.ask(&[2], LONG);
    assert_eq!(bench.pass(), [2]);
    assert_eq!(second.await.unwrap().unwrap(), [2.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_to_run_needs_no_pass() {
    let bench = Bench::new(100);
    assert_eq!(
        bench.ask(&[], LONG).await.unwrap().unwrap(),
        Vec::<f32>::new()
    );
}

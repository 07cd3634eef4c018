//! Pieces of an answer on their way.

use super::*;
use hob_http::limits::HttpLimits;

fn exchange() -> Arc<WorkerExchange> {
    let head = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let request = Request::offline(head, &HttpLimits::default()).unwrap();
    WorkerExchange::new(&request, Vec::new(), false)
}

fn put(exchange: &WorkerExchange, bytes: &[u8]) {
    let (is_wanted, _) = exchange.put_data(|| AnswerPiece::Bytes(Bytes::copy_from_slice(bytes)));
    assert!(is_wanted);
}

#[test]
fn many_small_pieces_wait_as_a_few_in_their_order() {
    let exchange = exchange();
    let mut right = Vec::new();
    for at in 0..100_000u32 {
        let piece = [at as u8; PIECE_APART_BYTES_MIN];
        // A large one now and then keeps its place among them.
        let piece = &piece[..if at % 10_000 == 9_999 { piece.len() } else { 1 }];
        put(&exchange, piece);
        right.extend_from_slice(piece);
    }
    assert!(exchange.state.lock().data.len() <= PIECES_APART_MAX + 20);
    let mut came = Vec::new();
    let cx = Context::from_waker(Waker::noop());
    while let AnswerBodyPoll::Piece(AnswerPiece::Bytes(piece)) = exchange.take(&cx, usize::MAX) {
        came.extend_from_slice(&piece);
    }
    assert!(came == right);
}

#[test]
fn whole_answer_of_small_pieces_is_whole() {
    let exchange = exchange();
    (0..100).for_each(|_| put(&exchange, b"x"));
    exchange.end(Ending::Whole(Vec::new()));
    assert!(!exchange.take_end(), "bytes come before the end");
    let Some(Ok(pieces)) = exchange.take_whole() else {
        panic!("all of it is here");
    };
    assert_eq!(pieces.iter().map(AnswerPiece::len).sum::<usize>(), 100);
}

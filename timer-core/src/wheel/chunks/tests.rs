//! The array in chunks.

use super::*;

const LEN: usize = Chunks::<usize>::LEN;

#[test]
fn an_array_in_chunks_behaves_like_a_vec() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut chunks, mut model) = (Chunks::default(), Vec::new());
    for round in 0..20_000_usize {
        // Mostly longer in some rounds, and mostly shorter in others.
        if random.u32(0..10) < if round / 500 % 2 == 0 { 6 } else { 4 } {
            chunks.push(round);
            model.push(round);
        } else {
            assert_eq!(chunks.pop(|memory| assert!(memory.is_empty())), model.pop());
        }
        assert_eq!(chunks.len(), model.len());
        assert!(chunks.full.iter().all(|chunk| chunk.len() == LEN));
        assert!(chunks.capacity() <= model.len() + 2 * LEN);
        for position in [0, LEN - 1, LEN, random.usize(0..100), usize::MAX] {
            assert_eq!(chunks.get(position), model.get(position));
            assert_eq!(chunks.get_mut(position), model.get_mut(position));
        }
        let nth = random.usize(0..100);
        let group = model.get(nth * 4..).map_or(&[][..], |rest| &rest[..rest.len().min(4)]);
        assert_eq!(chunks.group(nth, 4), group);
    }
    assert!(chunks.iter().eq(&model));
    assert!(chunks.into_iter().eq(model));
}

#[test]
fn growing_moves_no_full_chunk() {
    let mut chunks = Chunks::default();
    (0..LEN).for_each(|n| chunks.push(n));
    let first: *const usize = &chunks.last[0];
    (0..20 * LEN).for_each(|n| chunks.push(n));
    assert!(std::ptr::eq(first, &chunks.full[0][0]));
    assert_eq!(chunks.capacity(), chunks.len().div_ceil(LEN) * LEN);
}

//! A vector whose first element lies on a cache line, so that no vector load of a panel crosses two lines.

/// One cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Element types that any bit pattern is valid for.
pub(crate) trait Plain: Copy + Default + Send + Sync + 'static {}
impl Plain for f32 {}
impl Plain for i32 {}
impl Plain for i8 {}
impl Plain for u8 {}
impl Plain for u16 {}

/// A resizable, zero-filled, cache-line-aligned vector. Shrinking keeps the memory, so buffers can be reused.
pub(crate) struct Buffer<T> {
    lines: Vec<Line>,
    len: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T: Plain> Buffer<T> {
    /// `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        let mut buffer = Self {
            lines: Vec::new(),
            len: 0,
            kind: std::marker::PhantomData,
        };
        buffer.resize(len);
        buffer
    }

    /// Makes the length `len`. Old content stays where it was; what is new is zero or an older content of this buffer.
    pub(crate) fn resize(&mut self, len: usize) {
        let bytes = len * size_of::<T>();
        let lines = bytes.div_ceil(64);
        if lines > self.lines.len() {
            // Exactly: the memory of a pass is computed before it starts.
            self.lines.reserve_exact(lines - self.lines.len());
            self.lines.resize(lines, Line([0; 64]));
        }
        self.len = len;
    }

    /// Bytes held, used or not.
    pub(crate) fn held_bytes(&self) -> usize {
        self.lines.capacity() * 64
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: the lines hold at least `len` elements (`resize`), are initialised, 64-byte aligned, and every bit
        // pattern is a valid `T` (`Plain`).
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast::<T>(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<T>(), self.len) }
    }
}

impl<T: Plain> std::ops::Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Plain> std::ops::DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_aligned_zeroed_and_keeps_its_memory() {
        let mut buffer = Buffer::<f32>::zeroed(37);
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        assert!(buffer.iter().all(|v| *v == 0.0));
        let held = buffer.held_bytes();
        buffer.resize(5);
        assert_eq!((buffer.len(), buffer.held_bytes()), (5, held));
        buffer.resize(1000);
        assert_eq!(buffer.len(), 1000);
    }
}

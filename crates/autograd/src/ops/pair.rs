//! A number for each of height and width.

/// A number for height and width alike, or one for each: `2`, `[2, 1]`, `(2, 1)`.
pub trait IntoPair {
    /// The numbers for height and width.
    fn into_pair(self) -> [usize; 2];
}

impl IntoPair for usize {
    fn into_pair(self) -> [usize; 2] {
        [self; 2]
    }
}

impl IntoPair for [usize; 2] {
    fn into_pair(self) -> [usize; 2] {
        self
    }
}

impl IntoPair for (usize, usize) {
    fn into_pair(self) -> [usize; 2] {
        [self.0, self.1]
    }
}

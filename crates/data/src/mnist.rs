//! MNIST: handwritten digits (LeCun, Cortes, Burges), and any set in its form, such as Fashion-MNIST.

use std::path::{Path, PathBuf};

use stridegrad_autograd::Tensor;
use stridegrad_core::{Error, ErrorKind, Result, bail};

use crate::{Dataset, Idx};

const OP: &str = "mnist";
const CLASSES: u8 = 10;
/// Where the data lie if not where they are expected.
const VARIABLE: &str = "STRIDEGRAD_DATA";

/// Images and labels in memory: a batch is `(x, y)` with `x` f32 of shape (n, 1, 28, 28) in [0, 1], `y` i64 of
/// shape (n).
///
/// The files come with the repository, in `datasets/mnist`, gzipped. [`train`](Mnist::train) and
/// [`test`](Mnist::test) look for them in the directory that the environment variable `STRIDEGRAD_DATA` names, or
/// else in `datasets/mnist` beside the present directory and the executable, their parents, and the sources.
#[derive(Clone)]
pub struct Mnist {
    images: Vec<u8>,
    labels: Vec<u8>,
    height: usize,
    width: usize,
    // The value of each byte.
    values: [f32; 256],
}

impl Mnist {
    /// The 60,000 training images.
    ///
    /// # Errors
    /// `Io` where there are no files, naming the places; `Format` where they are malformed.
    pub fn train() -> Result<Mnist> {
        Mnist::train_in(find()?)
    }

    /// The 10,000 test images.
    ///
    /// # Errors
    /// As [`train`](Mnist::train).
    pub fn test() -> Result<Mnist> {
        Mnist::test_in(find()?)
    }

    /// The training images in `dir`: `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, plain or `.gz`.
    ///
    /// # Errors
    /// As [`train`](Mnist::train).
    pub fn train_in(dir: impl AsRef<Path>) -> Result<Mnist> {
        Mnist::open(dir.as_ref(), "train")
    }

    /// The test images in `dir`: `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, plain or `.gz`.
    ///
    /// # Errors
    /// As [`train`](Mnist::train).
    pub fn test_in(dir: impl AsRef<Path>) -> Result<Mnist> {
        Mnist::open(dir.as_ref(), "t10k")
    }

    fn open(dir: &Path, part: &str) -> Result<Mnist> {
        let images = Idx::open(file(dir, &format!("{part}-images-idx3-ubyte"))?)?;
        let labels = Idx::open(file(dir, &format!("{part}-labels-idx1-ubyte"))?)?;
        Mnist::from_idx(images, labels)
    }

    /// A set from its two arrays: u8 images (n, height, width) and u8 labels (n) below 10.
    ///
    /// # Errors
    /// `Format` where they have another form, `DType` where they are not u8.
    pub fn from_idx(images: Idx, labels: Idx) -> Result<Mnist> {
        let &[count, height, width] = images.sizes() else {
            bail!(Format, OP, "images of sizes {:?}, not (n, height, width)", images.sizes())
        };
        if labels.sizes() != [count] {
            bail!(Format, OP, "{count} images, but labels of sizes {:?}", labels.sizes());
        }
        let (images, labels) = (images.into_bytes()?, labels.into_bytes()?);
        if let Some(at) = labels.iter().position(|&l| l >= CLASSES) {
            bail!(Format, OP, "label {} at {at}, not below {CLASSES}", labels[at]);
        }
        let values = std::array::from_fn(|b| b as f32 / 255.0);
        Ok(Mnist { images, labels, height, width, values })
    }

    /// Subtracts `mean` from the values and divides them by `std`; the set's own are 0.1307 and 0.3081.
    pub fn normalize(mut self, mean: f32, std: f32) -> Mnist {
        self.values = std::array::from_fn(|b| (b as f32 / 255.0 - mean) / std);
        self
    }

    /// The first `n` examples alone.
    pub fn take(mut self, n: usize) -> Mnist {
        self.labels.truncate(n);
        self.images.truncate(self.labels.len() * self.height * self.width);
        self
    }

    /// The labels.
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// The bytes of image `i`, row by row; `None` beyond the last.
    pub fn image(&self, i: usize) -> Option<&[u8]> {
        let size = self.height * self.width;
        (i < self.labels.len()).then(|| &self.images[i * size..(i + 1) * size])
    }
}

impl Dataset for Mnist {
    type Batch = (Tensor, Tensor);

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<(Tensor, Tensor)> {
        let mut x = Vec::with_capacity(indices.len() * self.height * self.width);
        let mut y = Vec::with_capacity(indices.len());
        for &i in indices {
            let Some(image) = self.image(i) else { bail!(Index, OP, "example {i} of {}", self.len()) };
            x.extend(image.iter().map(|&b| self.values[usize::from(b)]));
            y.push(i64::from(self.labels[i]));
        }
        let x = Tensor::try_from_slice(&x, [indices.len(), 1, self.height, self.width])?;
        Ok((x, Tensor::try_from_slice(&y, [indices.len()])?))
    }
}

impl std::fmt::Debug for Mnist {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mnist({} images of {}x{})", self.labels.len(), self.height, self.width)
    }
}

/// The file `name` in `dir`, plain or gzipped.
fn file(dir: &Path, name: &str) -> Result<PathBuf> {
    let plain = dir.join(name);
    let found = [plain.clone(), dir.join(format!("{name}.gz"))].into_iter().find(|p| p.is_file());
    found.ok_or_else(|| {
        Error::new(ErrorKind::Io, OP, format!("there is neither {} nor {name}.gz", plain.display()))
    })
}

/// The directory with the set's files.
fn find() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os(VARIABLE) {
        let dir = PathBuf::from(dir);
        let mnist = dir.join("mnist");
        return Ok(if mnist.is_dir() { mnist } else { dir });
    }
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parents = starts.iter().flatten().flat_map(|p| p.ancestors());
    let found = parents.chain(sources.ancestors()).map(|p| p.join("datasets/mnist")).find(|p| p.is_dir());
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::Io,
            OP,
            "datasets/mnist is neither in the present directory nor in a parent of it",
        )
        .hint(format!("set {VARIABLE} to the directory that holds the files"))
    })
}

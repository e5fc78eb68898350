//! Where we differ from PyTorch on purpose.

use serde_json::{Value, json};

use crate::language::records;

/// Records of PyTorch's that are not what we give.
pub struct Deviation {
    pub ids: &'static [&'static str],
    /// Why not.
    pub why: &'static str,
    /// The words in `docs/src/differences.md` that say so.
    pub documented: &'static str,
    /// Makes of what PyTorch gives what we give.
    pub ours: fn(&mut Value),
}

/// The entry for a record, if there is one.
pub fn of(id: &str) -> Option<&'static Deviation> {
    DEVIATIONS.iter().find(|d| d.ids.contains(&id))
}

const DEVIATIONS: &[Deviation] = &[
    Deviation {
        ids: &["A15/sum/no_dims"],
        why: "a list of dims means those dims, an empty one none, as in NumPy; sum() is what reduces everything",
        documented: "sum over an empty list of dims",
        ours: |e| {
            e["tensors"]["y"] = json!({
                "dtype": "f32", "sizes": [2, 3], "strides": [3, 1], "offset": 0, "data": [0, 1, 2, 3, 4, 5]
            });
        },
    },
    Deviation {
        ids: &[
            "A3/to_cl/2x1x4x5",
            "A3/to_cl/2x3x1x1",
            "A3/to_cl/1x3x1x1",
            "A3/to_cl/2x1x1x1",
            "A3/to_cl/1x1x4x5",
            "A3/contiguous_back/2x1x4x5",
            "A3/contiguous_back/2x3x1x1",
            "A3/contiguous_back/1x3x1x1",
            "A3/contiguous_back/2x1x1x1",
            "A3/contiguous_back/1x1x4x5",
            "A3/suggested/expanded_channels",
        ],
        why: "only strides of dims of size 1 change, so nothing has to be copied",
        documented: "another memory format where only strides of sizes of 1 differ",
        ours: |e| e["tensors"]["y"]["shares"] = json!("x"),
    },
];

#[test]
fn deviations_are_documented() {
    let page = include_str!("../../../docs/src/differences.md");
    for d in DEVIATIONS {
        for id in d.ids {
            assert!(records().iter().any(|r| r.id == *id), "{id}: no such record");
        }
        assert!(page.contains(d.documented), "differences.md has no {:?} ({})", d.documented, d.why);
    }
}

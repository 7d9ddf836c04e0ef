"""Datasets of the paper's experiments: listed, fetched with their sha256 checked, and read into arrays.

`load` reads a multiclass set, `partition` a two-class set in training and test rows, `faces` images, `ground_motion`
spectra, `mixed_table` tables of mixed models. Files come from the folder named by the environment variable
`QUENCHED_DATA`, else from a cache (`QUENCHED_CACHE`), else from the network.
"""

from quenched.paper.datasets.amplitude_spectra import ground_motion
from quenched.paper.datasets.faces import Faces, faces
from quenched.paper.datasets.files import DatasetError, fetch, where
from quenched.paper.datasets.mixed_tables import mixed_table
from quenched.paper.datasets.multiclass_sets import Classification, load
from quenched.paper.datasets.registry import Dataset, find, names
from quenched.paper.datasets.two_class_partitions import Partition, partition

__all__ = [
    "Classification",
    "Dataset",
    "DatasetError",
    "Faces",
    "Partition",
    "faces",
    "fetch",
    "find",
    "ground_motion",
    "load",
    "mixed_table",
    "names",
    "partition",
    "where",
]

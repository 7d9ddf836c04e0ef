"""Datasets of the paper's experiments: listed, fetched with their sha256 checked, and read into arrays.

`load` reads a multiclass set, `partitions` a two-class set in training and test rows, `faces` images. Files come from the
folder named by the environment variable `QUENCHED_DATA`, else from a cache (`QUENCHED_CACHE`), else from the
network.
"""

from quenched.datasets.catalogue import Row, describe, names, table
from quenched.datasets.classification import Classification, load
from quenched.datasets.faces import Faces, faces
from quenched.datasets.fetching import fetch
from quenched.datasets.ground_motion import ground_motion, read_spectra_csv
from quenched.datasets.partition import Partition
from quenched.datasets.raetsch import partitions
from quenched.datasets.verification import DatasetError

__all__ = [
    "Classification",
    "DatasetError",
    "Faces",
    "Partition",
    "Row",
    "describe",
    "faces",
    "fetch",
    "ground_motion",
    "load",
    "names",
    "partitions",
    "read_spectra_csv",
    "table",
]

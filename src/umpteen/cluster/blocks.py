"""Matrices in blocks of rows: each batch of tasks gets the rows that it needs.

Blocks are objects of the store, known by their content, and each has a home node. Tasks there cut
out the rows that batches elsewhere need, for many batches at a time, so that nodes exchange rows
and not blocks. A batch that needs most of a block gets the block.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.cluster.parcels import digest
from umpteen.sharding import IntArray, Matrix, OnRows, Part, Sharded, rows_of
from umpteen.validation.arrays import index_dtype

_MOST = 0.5  # of a block's rows; a batch that needs more gets the block


class Delivery(NamedTuple):
    """How the rows of a batch come, piece by piece, in the order of blocks.

    A piece is either a slice, which has the rows alone, or a block that they are `taken` from. A
    block has an object for each matrix. `n_values` counts the values of each matrix. If a batch
    needs so much that its blocks must not be in the store at once, they are in `apart`.
    """

    taken: list[IntArray | None]
    n_values: list[int]
    apart: list[Any]


class Blocks:
    """The matrices of a `Sharded` in a number of blocks."""

    def __init__(self, sharded: Sharded, n_blocks: int) -> None:
        self.matrices = sharded.matrices
        n_rows = self.matrices[0].shape[0]
        self.borders = np.arange(n_blocks + 1, dtype=np.int64) * n_rows // n_blocks
        self.size = sum(map(size_of, self.matrices))  # in bytes

    def __len__(self) -> int:
        return len(self.borders) - 1

    def block(self, number: int) -> list[Matrix]:
        """Return the rows of a block of each matrix, as views where types are the same."""
        first, last = self.borders[number : number + 2].tolist()
        return [_view(matrix, first, last) for matrix in self.matrices]

    def n_values(self, rows: IntArray) -> list[int]:
        """Return how many values some rows of each matrix have."""
        return [
            int((each.indptr[rows + 1] - each.indptr[rows]).sum())
            if isinstance(each, csr_matrix)
            else len(rows)
            for each in self.matrices
        ]

    def n_bytes(self, rows: IntArray) -> int:
        """Return the size of some rows."""
        return sum(
            n * (each.data.itemsize + each.indices.itemsize) + len(rows) * each.indptr.itemsize
            if isinstance(each, csr_matrix)
            else each[:1].nbytes * len(rows)
            for n, each in zip(self.n_values(rows), self.matrices, strict=True)
        )

    def split(self, rows: IntArray) -> list[IntArray]:
        """Return the rows in each block, counted from its first."""
        pieces = np.split(rows, np.searchsorted(rows, self.borders[1:-1]))
        return [
            (piece - first).astype(np.int32)
            for piece, first in zip(pieces, self.borders[:-1], strict=True)
        ]

    def is_most(self, number: int, n_rows: int) -> bool:
        """Return whether so many rows are most of a block, which is then not worth a slice."""
        first, last = self.borders[number : number + 2].tolist()
        return bool(n_rows > _MOST * (last - first))


def number_of_blocks(matrix: Matrix, n_nodes: int, largest: float) -> int:
    """Return equally many blocks for each node, of about `largest` bytes at most.

    >>> number_of_blocks(np.zeros(1000, np.int8), 3, 100)
    12
    """
    return max(1, int(np.ceil(size_of(matrix) / (n_nodes * largest)))) * n_nodes


def size_of(matrix: Matrix) -> int:
    """Return the bytes of a matrix.

    >>> size_of(csr_matrix(np.eye(3, dtype=np.float32)))
    40
    """
    return sum(array.nbytes for array in _arrays(matrix))


def key_of(matrix: Matrix) -> str:
    """Return letters that tell a matrix from any other."""
    arrays = _arrays(matrix)
    kind = repr([matrix.shape, [array.dtype.str for array in arrays]]).encode()
    return digest(kind, *(np.ascontiguousarray(each).view(np.uint8).ravel() for each in arrays))


def cut(rows_of_batches: Sequence[IntArray], *block: Matrix) -> Any:
    """Return the rows of a block that each batch needs: what Ray runs at the block's home."""
    slices = [[_taken(matrix, rows) for matrix in block] for rows in rows_of_batches]
    return slices if len(slices) > 1 else slices[0]


def delivered(
    batch: list[OnRows], delivery: Delivery, values: Sequence[Any], fetch: Callable[[Any], Any]
) -> Part:
    """Return the rows of a batch: what a worker puts together before its tasks run."""
    kept = rows_of(batch)
    objects = (fetch(each) for each in delivery.apart) if delivery.apart else iter(values)
    pieces = _pieces(delivery, objects)
    if len(delivery.taken) == 1:
        return Part(kept, *next(pieces))
    return Part(kept, *_joined(pieces, len(kept), delivery.n_values))


def _pieces(delivery: Delivery, objects: Iterator[Any]) -> Iterator[list[Matrix]]:
    for rows in delivery.taken:
        if rows is None:
            yield next(objects)
        else:
            yield [_taken(next(objects), rows) for _ in delivery.n_values]


def _joined(pieces: Iterator[list[Matrix]], n_rows: int, n_values: list[int]) -> list[Matrix]:
    """Copy pieces behind one another; each is let go before the next is fetched."""
    whole: list[Any] = []
    row, starts = 0, [0] * len(n_values)
    for piece in pieces:
        end = row + piece[0].shape[0]
        for i, own in enumerate(piece):
            if row == 0:
                whole.append(_empty(own, n_rows, n_values[i]))
            if isinstance(own, csr_matrix):
                values = slice(starts[i], starts[i] + own.nnz)
                whole[i].data[values], whole[i].indices[values] = own.data, own.indices
                whole[i].indptr[row + 1 : end + 1] = own.indptr[1:].astype(np.int64) + starts[i]
                starts[i] = values.stop
            else:
                whole[i][row:end] = own
        row = end
        del piece, own
    return whole


def _taken(matrix: Matrix, rows: IntArray) -> Any:
    """Return some rows; if these are all, the matrix itself."""
    if len(rows) == matrix.shape[0]:
        return matrix
    found: Any = matrix[rows]
    if isinstance(matrix, csr_matrix):  # scipy may choose other types, and kernels know one
        found.indices = found.indices.astype(matrix.indices.dtype, copy=False)
        found.indptr = found.indptr.astype(matrix.indptr.dtype, copy=False)
    return found


def _empty(like: Any, n_rows: int, n_values: int) -> Matrix:
    if not isinstance(like, csr_matrix):
        return np.empty((n_rows, *like.shape[1:]), like.dtype)
    matrix = csr_matrix((n_rows, like.shape[1]), dtype=like.dtype)
    matrix.data = np.empty(n_values, like.data.dtype)
    dtype = index_dtype(n_values, n_rows)  # all rows may be more than one block can have
    matrix.indices, matrix.indptr = np.empty(n_values, dtype), np.zeros(n_rows + 1, dtype)
    return matrix


def _view(matrix: Matrix, first: int, last: int) -> Matrix:
    if not isinstance(matrix, csr_matrix):
        return matrix[first:last]
    start, end = int(matrix.indptr[first]), int(matrix.indptr[last])
    dtype = index_dtype(end - start, last - first)
    view = csr_matrix((last - first, matrix.shape[1]), dtype=matrix.dtype)
    view.data = matrix.data[start:end]
    view.indices = matrix.indices[start:end].astype(dtype, copy=False)
    view.indptr = (matrix.indptr[first : last + 1] - start).astype(dtype, copy=False)
    return view


def _arrays(matrix: Matrix) -> list[Any]:
    if isinstance(matrix, csr_matrix):
        return [matrix.indptr, matrix.indices, matrix.data]
    return [matrix]

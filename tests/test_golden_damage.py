"""Every golden file of table indexes and Puffin, each byte flipped and every end cut off.

Of the larger files every n-th byte is taken. Deletion vectors have checksums: no damage goes
unnoticed. The others have none, so damage may change what they say, but never more than that.
"""

from __future__ import annotations

import io
from itertools import chain, islice

import pytest

from alcid import (
    AlcidError,
    DeletionVector,
    DeletionVectorFile,
    FormatError,
    HashIndex,
    ThetaSketch,
    puffin,
)
from alcid.testing import Damage, flips, truncations
from tests.golden_files import Golden, golden_files, golden_id
from tests.test_golden_tables import ranges_of

WHOLE = 2_000
"""Bytes of the files of which every byte is damaged."""


def damages(golden: Golden) -> list[Damage]:
    every = chain(flips(golden.data), truncations(golden.data))
    # An odd step, so that all bytes of the numbers have their turn.
    return list(islice(every, 0, None, 2 * (len(golden.data) // WHOLE) + 1))


@pytest.mark.parametrize("golden", golden_files("deletion_vector"), ids=golden_id)
def test_no_damage_to_a_vector_goes_unnoticed(golden: Golden) -> None:
    for damage in damages(golden):
        with pytest.raises(FormatError):
            DeletionVector.from_bytes(damage.data)


@pytest.mark.parametrize("golden", golden_files("deletion_vector_file"), ids=golden_id)
def test_no_damage_to_a_vector_file_goes_unnoticed(golden: Golden) -> None:
    ranges = ranges_of(golden)
    for damage in damages(golden):
        with pytest.raises(FormatError), DeletionVectorFile.from_bytes(damage.data) as file:
            file.read_all(ranges)
    # Without the manifest, a file that ends behind a vector looks whole, and nothing else does.
    ends = {1} | {item.offset for item in ranges}
    for damage in damages(golden):
        if len(damage.data) in ends and len(damage.data) < len(golden.data):
            continue
        with pytest.raises(FormatError), DeletionVectorFile.from_bytes(damage.data) as file:
            list(file.scan())


@pytest.mark.parametrize("golden", golden_files("hash_index"), ids=golden_id)
def test_a_damaged_hash_index_has_as_many_hashes(golden: Golden) -> None:
    for damage in damages(golden):
        if len(damage.data) % 4:
            with pytest.raises(FormatError):
                HashIndex.from_bytes(damage.data)
        else:
            index = HashIndex.from_bytes(damage.data)
            assert len(index) + index.duplicates == len(damage.data) // 4


@pytest.mark.parametrize("golden", golden_files("puffin"), ids=golden_id)
def test_a_damaged_puffin_file_is_read_or_refused(golden: Golden) -> None:
    for damage in damages(golden):
        try:
            with puffin.open(io.BytesIO(damage.data)) as reader:
                for blob in reader.blobs:
                    read(reader, blob)
        except AlcidError:
            continue
        except Exception as error:
            error.add_note(damage.what)
            raise
        assert len(damage.data) == len(golden.data), damage.what


def read(reader: puffin.PuffinReader, blob: puffin.Blob) -> None:
    if blob.type == puffin.DELETION_VECTOR:
        reader.read_deletion_vector(blob)
    elif blob.type == puffin.THETA_SKETCH:
        reader.read_theta_sketch(blob)
    else:
        reader.read(blob)


@pytest.mark.parametrize("golden", golden_files("theta"), ids=golden_id)
def test_a_damaged_sketch_is_one_or_refused(golden: Golden) -> None:
    for damage in damages(golden):
        try:
            sketch = ThetaSketch.from_bytes(damage.data)
        except FormatError:
            continue
        except Exception as error:
            error.add_note(damage.what)
            raise
        assert len(damage.data) == len(golden.data), damage.what
        assert ThetaSketch.from_bytes(sketch.to_bytes()) == sketch, damage.what

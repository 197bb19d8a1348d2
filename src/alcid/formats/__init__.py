"""Bytes to values and back: one package or module a format, on what all of them share.

| shared         |                                                              |
|----------------|--------------------------------------------------------------|
| `source`       | where bytes come from: ranged reads, checked sections        |
| `cursor`       | fields one after the other, big-endian                       |
| `roaring`      | Roaring bitmaps                                              |
| `arrays`       | Arrow arrays without their wrapping, and NumPy's             |
| `same_length`  | byte strings, hashed together                                |
| `selection`    | rows that may match                                          |

| format            |                                                                  |
|-------------------|------------------------------------------------------------------|
| `file_index`      | Paimon: bloom-filter, bitmap, range-bitmap, bsi, their container |
| `deletion_vector` | Paimon and Iceberg: rows that are deleted                        |
| `binary_row`      | Paimon: keys as bytes, and their hash                            |
| `hash_index`      | Paimon: the hashes of the keys of a bucket                       |
| `buckets`         | Paimon: which bucket a key goes to                               |
| `puffin`          | Iceberg: files of blobs                                          |
| `theta`           | Iceberg: sketches of distinct values                             |

Formats never see SQL, tables or Spark.
"""

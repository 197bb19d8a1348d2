"""Formats: bytes to values and back, one package or module for each.

| shared         |                                                              |
|----------------|--------------------------------------------------------------|
| `source`       | ranged reads, checked sections                               |
| `cursor`       | fields one after the other, big-endian                       |
| `roaring`      | Roaring bitmaps                                              |
| `hashing`      | Murmur3, of many byte strings at once                        |
| `avro`         | Avro containers, checked                                     |

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

"""Iceberg tables: statistics, indexes in Puffin files, reads that use them, deletion vectors."""

"""Iceberg tables: metadata, index bundles in statistics files, reads, and deletion vectors."""

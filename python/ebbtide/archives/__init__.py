"""Archives that many memories share: PostgreSQL with pgvector, Chroma, or a file.

A memory ships its turns with :func:`ship`; anyone may :func:`search_archive`, and
:func:`pull` makes a memory of a namespace again.
"""

from __future__ import annotations

from ebbtide.archives.addresses import open_archive
from ebbtide.archives.asking import SharedEvidence, search_archive
from ebbtide.archives.base import Archive, Hit, Identity, Source
from ebbtide.archives.file import FileArchive
from ebbtide.archives.migrating import Migrated, migrate
from ebbtide.archives.pulling import Pulled, pull
from ebbtide.archives.reading import identity_of
from ebbtide.archives.records import Block, Record
from ebbtide.archives.retrying import Retry
from ebbtide.archives.shipping import Shipped, ship

__all__ = [
    "Archive",
    "Block",
    "FileArchive",
    "Hit",
    "Identity",
    "Migrated",
    "Pulled",
    "Record",
    "Retry",
    "SharedEvidence",
    "Shipped",
    "Source",
    "identity_of",
    "migrate",
    "open_archive",
    "pull",
    "search_archive",
    "ship",
]

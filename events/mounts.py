"""Which file system a path lies on, and which of them cannot hold a ledger in use. Reads /proc alone; says nothing where there is none."""

from __future__ import annotations

from pathlib import Path

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "ncpfs", "afs", "davfs"),
        *("lustre", "gpfs", "beegfs", "ceph", "glusterfs", "orangefs", "pvfs2", "panfs", "wekafs"),
        *("fuse.glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.juicefs"),
    }
)
"""Types whose locks, shared memory or fsync are another machine's to keep."""

_MOUNTS = Path("/proc/self/mountinfo")


def type_of(path: Path) -> str | None:
    """The type of the file system that holds `path`; None where this system does not tell."""
    try:
        return holding(_MOUNTS.read_text("utf-8", "surrogateescape"), str(path))
    except OSError:
        return None


def holding(mountinfo: str, path: str) -> str | None:
    """The type by a text of /proc/PID/mountinfo; of two mounts on one place the later one counts."""
    longest, found = -1, None
    for line in mountinfo.splitlines():
        left, dash, right = line.partition(" - ")
        fields = left.split(" ")
        if not dash or len(fields) < 5:
            continue
        place = _unescaped(fields[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= longest:
            longest, found = len(place), right.split(" ")[0]
    return found


def _unescaped(place: str) -> str:
    """Blanks, tabs, line ends and backslashes stand as octal numbers in mountinfo."""
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        place = place.replace(f"\\{code}", character)
    return place

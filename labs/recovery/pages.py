"""The pages that the tests follow, and the packages that these install on their machine."""

import re

from labs.installation.machine import commands

PAGE = "install-systemd.md"
ENGINES, BACKUPS = "PostgreSQL and Redis", "Backups that run by themselves"
COPY = "A copy on another host"


def packages() -> str:
    """The packages of Debian, as a list for mmdebstrap."""
    blocks = [commands(PAGE, ENGINES), commands("backup.md", BACKUPS)]
    blocks += [commands("backup.md", COPY, number) for number in (0, 1)]
    blocks.append(commands("lost-host.md", "What to do"))
    words = " ".join(re.findall(r"^apt-get install (.*)$", "\n".join(blocks), re.M)).split()
    return ",".join(dict.fromkeys(word for word in words if not word.startswith("-")))

"""The limits that programs without Django read, too (deploy/probe.py)."""

# After its last sign of life, a process counts as missing. Longer than one failed long poll of the
# bot and the next one.
ALIVE_SECONDS = 60

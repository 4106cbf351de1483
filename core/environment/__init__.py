"""Reads the environment of a process, and stops a process whose environment is wrong."""

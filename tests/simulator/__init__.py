"""Tests of the simulator and of the exam."""

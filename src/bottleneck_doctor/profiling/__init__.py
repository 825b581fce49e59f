"""Profilers that others wrote: they are run, what they say goes in, and parts of `Profiles` come out."""

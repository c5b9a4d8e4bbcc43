"""The nouns that every room shares, as frozen records.

This room knows no IO and no clock: an instant arrives as a value, an id is derived from
what it names. Everything here can be written to JSON and read back unchanged.
"""

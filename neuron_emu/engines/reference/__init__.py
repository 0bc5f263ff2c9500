"""The slow twin of the engines: plain loops over Python integers, the oracle of the tests."""
